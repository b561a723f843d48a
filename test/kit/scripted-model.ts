// A model with answers that a test wrote down. It is a kernel `Model`, so a run cannot tell it from a real model.
import type { CallUsage, Model, ModelCallOptions, ModelOutcome, ModelRequest } from '../../src/kernel/model-call.ts'

export interface ScriptedCall {
  /** By default `call_<number of the model call>_<place in the step>`, both counted from 1. */
  id?: string
  name: string
  args?: unknown
  /** The raw text of the arguments, for text that `args` cannot express. */
  input?: string
}

export interface ScriptedAnswer {
  text?: string
  /** The text of the answer, sent in pieces. */
  textParts?: readonly string[]
  calls?: readonly ScriptedCall[]
  /** By default `tool-calls` or `stop`. */
  finishReason?: string
  usage?: Partial<CallUsage>
  /** The call fails after its text. */
  fail?: { message: string; isRetryable: boolean; retryAfterMs?: number | null; reason?: 'quota' | 'context' }
  /** After the text and before the end: a promise to wait for, or `abort` to hang until the call is aborted. */
  waitFor?: Promise<unknown> | 'abort'
}

/** Numbers count from 1 over all calls of this model. */
export type Script = (request: ModelRequest, callNumber: number) => ScriptedAnswer | Promise<ScriptedAnswer>

export interface ScriptedModel extends Model {
  /** The requests, oldest first, copied on arrival. */
  readonly requests: ModelRequest[]
}

/** A list has one entry for each call, and calls after its end fail; a function decides by the request. */
export function createScriptedModel(
  script: readonly ScriptedAnswer[] | Script,
  { contextTokens = 128_000, price = null }: Partial<Pick<Model, 'contextTokens' | 'price'>> = {},
): ScriptedModel {
  const answerTo = typeof script === 'function' ? script : fromList(script)
  const requests: ModelRequest[] = []
  return {
    contextTokens,
    price,
    requests,
    async call(request, options) {
      requests.push(structuredClone(request))
      const callNumber = requests.length
      return perform(await answerTo(request, callNumber), callNumber, options)
    },
  }
}

function fromList(answers: readonly ScriptedAnswer[]): Script {
  return (_request, callNumber) =>
    answers[callNumber - 1] ?? {
      fail: { message: `The script has no answer to call ${callNumber}.`, isRetryable: false },
    }
}

async function perform(answer: ScriptedAnswer, callNumber: number, options: ModelCallOptions): Promise<ModelOutcome> {
  const usage = { inputTokens: 10, outputTokens: 5, isEstimated: false, ...answer.usage }
  let text = ''
  for (const part of answer.textParts ?? (answer.text ? [answer.text] : [])) {
    if (options.signal.aborted) break
    text += part
    options.onText(part)
  }
  if (answer.waitFor) await settledOrAborted(answer.waitFor, options.signal)
  if (options.signal.aborted) return { kind: 'aborted', text, usage: { ...usage, isEstimated: true } }
  if (answer.fail) return { kind: 'failed', retryAfterMs: null, ...answer.fail, text, usage }
  const calls = (answer.calls ?? []).map((call, index) => ({
    id: call.id ?? `call_${callNumber}_${index + 1}`,
    name: call.name,
    input: call.input ?? JSON.stringify(call.args ?? {}),
  }))
  const finishReason = answer.finishReason ?? (calls.length > 0 ? 'tool-calls' : 'stop')
  return { kind: 'answered', text, reasoning: [], calls, finishReason, usage }
}

async function settledOrAborted(waitFor: Promise<unknown> | 'abort', signal: AbortSignal): Promise<void> {
  if (signal.aborted) return
  const { promise, resolve } = Promise.withResolvers<void>()
  const onAbort = () => resolve()
  signal.addEventListener('abort', onAbort, { once: true })
  await (waitFor === 'abort' ? promise : Promise.race([waitFor, promise]))
  signal.removeEventListener('abort', onAbort)
}
