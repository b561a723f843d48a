import type { LanguageModelV4Message } from '@ai-sdk/provider'
import { costOf } from '../kernel/cost.ts'
import type { StepUsage } from '../kernel/run.ts'
import { estimateInputTokens } from '../models/estimate-tokens.ts'
import { stopped } from './end.ts'
import { userMessage } from './messages.ts'
import { append, remainingMs, type Session, spend, withChange } from './session.ts'

const INSTRUCTION =
  'The conversation above is about to be shortened. Write down everything that is needed to go on without it: the goal, ' +
  'what was done, what was found (with exact names, numbers and ids), decisions, and what is left to do. Only that text.'

/** The newest history stays word for word, as much of it as fits in this share of the context. */
const KEEP_SHARE = 0.2
const SUMMARY_TOKENS = 2_048

/**
 * The older part of the history becomes a summary, which the model writes; the original stays in the journal. If
 * nothing can be summarised, or the summary does not come, the run pauses: a provider's refusal would lose the work.
 */
export async function compactHistory(session: Session): Promise<'again' | 'left'> {
  const { state, model, stage, control, settings } = session
  const keep = newestThatFit(state.messages, model.contextTokens * KEEP_SHARE)
  const older = state.messages.slice(1, state.messages.length - keep)
  if (older.length < 2) return pauseForContext(session)
  const fits = trimToFit(older, model.contextTokens * 0.9 - SUMMARY_TOKENS)
  const call = control.signalFor(remainingMs(session, settings.grace_period))
  const outcome = await model.call(
    {
      prompt: [
        { role: 'system', content: session.prompt || 'You are a careful writer.' },
        ...fits,
        userMessage(INSTRUCTION),
      ],
      tools: stage.faces,
      toolChoice: 'none',
      maxOutputTokens: SUMMARY_TOKENS,
    },
    { signal: call.signal, onText: () => {} },
  )
  call.end()
  const { inputTokens, outputTokens, isEstimated } = outcome.usage
  const cost = costOf(model.price, inputTokens, outputTokens)
  const usage = { input_tokens: inputTokens, output_tokens: outputTokens, estimated: isEstimated, cost_usd: cost }
  if (outcome.kind === 'aborted') {
    const { steps } = state
    const lost = { step: steps + 1, reason: 'handed_back', usage } as const
    await append(session, [{ kind: 'step.restarted', data: lost }], spend(session, usage))
    return 'again'
  }
  if (outcome.kind === 'failed' || outcome.text.trim() === '') return pauseForContext(session, usage)
  const compacted = { step: state.steps, summary: outcome.text, keep, usage }
  await append(session, [{ kind: 'context.compacted', data: compacted }], spend(session, usage))
  return 'again'
}

const NOTHING: StepUsage = { input_tokens: 0, output_tokens: 0, estimated: false, cost_usd: null }

async function pauseForContext(session: Session, usage: StepUsage = NOTHING): Promise<'left'> {
  const end = stopped('context', session.state.text || null)
  await append(session, [end.event], withChange(spend(session, usage), end.set))
  return 'left'
}

/** The number of last messages that stay. They begin with the model's own: a result without its call is an error. */
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
