import type { LanguageModelV4Message } from '@ai-sdk/provider'
import { costOf } from '../kernel/cost.ts'
import type { Limit } from '../kernel/guards.ts'
import type { ModelRequest } from '../kernel/model-call.ts'
import type { StepUsage } from '../kernel/run.ts'
import { estimateInputTokens } from '../models/estimate-tokens.ts'
import { brokenOff, type End, leave, stopped } from './end.ts'
import { userMessage } from './messages.ts'
import { afterModel, type PreparedRequest } from './middleware.ts'
import { append, chosenModel, type OwnedRun, remainingMs, spend } from './owned-run.ts'
import { promptTokens } from './prompt.ts'
import { afterFailure } from './retry-step.ts'

const INSTRUCTION =
  'The conversation above is about to be shortened. Write down everything that is needed to go on without it: the goal, ' +
  'what was done, what was found (with exact names, numbers and ids), decisions, and what is left to do. Only that text.'

/** The newest history stays word for word, as much of it as fits in this share of the context. */
const KEEP_SHARE = 0.2
const SUMMARY_TOKENS = 2_048
/** In a small context the summary leaves room for the history that it is about. */
const SUMMARY_SHARE = 0.25

/** The request for a summary of the older history, and the number of messages that stay. Null if there is nothing. */
export function planCompaction(owned: OwnedRun): { request: ModelRequest; keep: number } | null {
  const { state } = owned
  const { stage, prompt } = owned
  const window = windowOf(owned)
  const keep = newestThatFit(state.messages, window * KEEP_SHARE)
  const older = state.messages.slice(1, state.messages.length - keep)
  if (older.length < 2) return null
  const maxOutputTokens = Math.max(1, Math.min(SUMMARY_TOKENS, Math.floor(window * SUMMARY_SHARE)))
  const fits = trimToFit(older, window * 0.9 - maxOutputTokens)
  return {
    keep,
    request: {
      prompt: [{ role: 'system', content: prompt || 'You are a careful writer.' }, ...fits, userMessage(INSTRUCTION)],
      tools: stage.faces,
      toolChoice: 'none',
      maxOutputTokens,
    },
  }
}

/**
 * A provider that refused the request as too long has a smaller context than Muster knows of. The history is trimmed by
 * the estimate, so the window is at least a share of it, whatever the provider has counted.
 */
const windowOf = (owned: OwnedRun): number => {
  const { model, state } = owned
  if (!state.isTooLong) return model.contextTokens
  const refused = Math.max(promptTokens(owned), estimateInputTokens({ prompt: state.messages, tools: [] }))
  return Math.min(model.contextTokens, refused * 0.75)
}

/** The model writes the summary. If none comes, the run pauses, because a provider's refusal would lose the work. */
export async function compactHistory(
  owned: OwnedRun,
  { keep, limit }: { keep: number; limit: Limit | null },
  { request }: PreparedRequest,
): Promise<'again' | 'left'> {
  const { state, model, control, settings } = owned
  const step = state.steps + 1
  const call = control.signalFor(remainingMs(owned, settings.grace_period))
  owned.woken = null
  const said = await model.call(request, { signal: call.signal, onText: () => {} })
  owned.deps.outages.heard(chosenModel(owned), said)
  const passed = said.kind === 'answered' ? await afterModel(owned, said, { step, signal: call.signal }) : null
  call.end()
  const { inputTokens, outputTokens, isEstimated } = said.usage
  const cost = costOf(model.price, inputTokens, outputTokens)
  const usage = { input_tokens: inputTokens, output_tokens: outputTokens, estimated: isEstimated, cost_usd: cost }
  if (said.kind === 'aborted' || passed?.kind === 'aborted') {
    const lost = { step, reason: 'handed_back', usage } as const
    await append(owned, [{ kind: 'step.restarted', data: lost }], spend(owned, usage))
    return 'again'
  }
  if (said.kind === 'failed') {
    const ifLost = (): End => stopped('context', state.text || null)
    return afterFailure(owned, { outcome: { ...said, text: '' }, usage, step, windDown: limit, ifLost })
  }
  if (passed?.kind === 'failed') return leave(owned, brokenOff(owned, passed.message), [], spend(owned, usage))
  if (!passed || passed.value.text.trim() === '') return pauseForContext(owned, limit, usage)
  const compacted = { step: state.steps, summary: passed.value.text, keep, usage }
  await append(owned, [{ kind: 'context.compacted', data: compacted }], spend(owned, usage))
  return 'again'
}

const NOTHING: StepUsage = { input_tokens: 0, output_tokens: 0, estimated: false, cost_usd: null }

/** A run that has reached its limit pauses for that reason. */
export const pauseForContext = (owned: OwnedRun, limit: Limit | null, usage = NOTHING): Promise<'left'> =>
  leave(owned, stopped(limit ?? 'context', owned.state.text || null), [], spend(owned, usage))

/** The number of last messages that stay. The first is the model's, because a result without its call is an error. */
function newestThatFit(messages: readonly LanguageModelV4Message[], tokens: number): number {
  let left = tokens
  let keep = 0
  for (let count = 1; count <= messages.length - 2; count++) {
    const message = messages[messages.length - count]
    if (!message) break
    left -= estimateInputTokens({ prompt: [message], tools: [] })
    if (left < 0) break
    if (message.role === 'assistant') keep = count
  }
  return keep
}

/** A history that is too long even for the summary loses its middle; the task and the end stay. */
function trimToFit(messages: readonly LanguageModelV4Message[], tokens: number): LanguageModelV4Message[] {
  const first = messages[0]
  if (!first) return []
  const rest = newestThatFit([first, ...messages], tokens - estimateInputTokens({ prompt: [first], tools: [] }))
  return rest >= messages.length - 1 ? [...messages] : [first, ...messages.slice(messages.length - rest)]
}
