import type { StreamEvent } from '../../api/follow.ts'

/** The text of a step under way. */
export interface LiveStep {
  runId: string
  step: number
  text: string
}

/** The last try of a step that the model did not answer. */
export interface FailedTry {
  message: string
  /** Null if the events do not tell the time. */
  nextAt: string | null
}

/** The end of a failed try: words of the model, or anything that happened to the run after it. */
const AFTER_TRY = /^(token$|step\.completed$|run\.)/

/** The failed try after the event, of which the run has not got further. */
export function nextFailure(known: FailedTry | null, { event, data }: StreamEvent, runId: string): FailedTry | null {
  if (event !== 'step.restarted' && !AFTER_TRY.test(event)) return known
  const told = JSON.parse(data) as { run_id: string; at: string; reason?: string; message?: string; wait?: number } // as kernel/run-event.ts
  if (told.run_id !== runId || event === 'run.parked') return known
  if (event !== 'step.restarted' || told.reason !== 'failed') return null
  const nextAt = told.wait === undefined ? null : new Date(Date.parse(told.at) + told.wait).toISOString()
  return { message: told.message ?? 'The model did not answer.', nextAt }
}

/** Pieces are placed by their offset: after a reconnect the text of the step comes again from its start. */
export function nextText(known: LiveStep | null, { event, data }: StreamEvent, runId: string): LiveStep | null {
  const told = JSON.parse(data) as { run_id: string; step: number; offset?: number; text?: string } // as src/journal/follow.ts tells it
  if (told.run_id !== runId) return known
  if (event === 'step.restarted') return null
  const { step, offset = 0, text = '' } = told
  const before = known?.step === step ? known.text : ''
  if (offset > before.length) return known
  return { runId, step, text: before.slice(0, offset) + text }
}
