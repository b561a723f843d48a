import type { StreamEvent } from '../../api/follow.ts'

/** The text of a step under way. */
export interface LiveStep {
  runId: string
  step: number
  text: string
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
