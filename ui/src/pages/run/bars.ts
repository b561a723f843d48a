// The bars of the waterfall: model calls, tool calls, and the times in which the run waited.
import type { RunWait } from '../../../../src/kernel/run.ts'
import type { Step, ToolStep } from '../../api/shapes.ts'

export interface Bar {
  key: number
  name: string
  /** A whole sentence, for people who point at the bar. */
  about: string
  kind: Step['kind'] | 'wait'
  from: number
  ms: number
}

const WAITS: Partial<Record<RunWait['reason'], [name: string, about: string]>> = {
  human: ['Wait: person', 'The run waited for an answer from a person.'],
  halted: ['Wait: halt', 'The project was halted.'],
  budget: ['Wait: tokens', 'The run waited for tokens.'],
  unavailable: ['Wait: model', 'The model could not be reached.'],
  stopped: ['Wait: start', 'The agent was stopped.'],
  outcome_unknown: ['Wait: decision', 'A person had to say whether a call was made.'],
}

/** A call of a question is noted when its answer is there: so near to the end of a wait it is the call of that wait. */
const AT_ONCE_MS = 2_000

/** In the order of the journal. A wait under way lasts until now. */
export function barsOf(steps: readonly Step[], waits: readonly RunWait[], now: number): Bar[] {
  const waited = merged(waits, steps).map((wait) => waitBar(wait, now))
  const isQuestion = (step: Step): boolean =>
    step.kind === 'tool' &&
    isAnswered(step) &&
    waited.some(({ from, ms }) => Math.abs(Date.parse(step.started_at) - from - ms) < AT_ONCE_MS)
  // The call of a question takes no time when its answer is there: its bar is the wait.
  const done = steps.filter((step) => !isQuestion(step)).map(stepBar)
  return [...done, ...waited].sort((a, b) => a.key - b.key)
}

const isAnswered = ({ name, blocked }: ToolStep): boolean => name === 'ask_human' && blocked === null

/** A run that waits for tokens asks for them every minute. That is one wait, unless a step lies between. */
function merged(waits: readonly RunWait[], steps: readonly Step[]): RunWait[] {
  const all: RunWait[] = []
  for (const wait of waits) {
    const before = all.at(-1)
    const isSame = before?.reason === wait.reason && !steps.some(({ seq }) => seq > before.seq && seq < wait.seq)
    if (!before || !isSame) all.push(wait)
    else all[all.length - 1] = { ...before, duration: spanned(before, wait) }
  }
  return all
}

const spanned = (first: RunWait, last: RunWait): number | null =>
  last.duration === null ? null : Date.parse(last.started_at) + last.duration - Date.parse(first.started_at)

function waitBar({ seq, reason, started_at: startedAt, duration }: RunWait, now: number): Bar {
  const [name, about] = WAITS[reason] ?? [`Wait: ${reason}`, 'The run waited.']
  const from = Date.parse(startedAt)
  return { key: seq, name, about, kind: 'wait', from, ms: duration ?? Math.max(0, now - from) }
}

function stepBar(step: Step): Bar {
  const [name, about] =
    step.kind === 'model'
      ? [`Step ${step.step}`, `The model call of step ${step.step}.`]
      : step.kind === 'tool'
        ? [step.name, `The call of ${step.name} in step ${step.step}.`]
        : ['flow', 'The flow run that the run started.']
  return { key: step.seq, name, about, kind: step.kind, from: Date.parse(step.started_at), ms: step.duration ?? 0 }
}
