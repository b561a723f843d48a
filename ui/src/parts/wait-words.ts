// The status of a run as people are told it: a run that continues by itself or by an answer waits, and has not stopped.
import type { Run } from '../../../src/kernel/run.ts'
import { providerWords } from '../../../src/kernel/why-stopped.ts'

export type Waiting = Pick<Run, 'status' | 'is_wait' | 'waiting_for' | 'wait_message' | 'pause_reason'>

export const statusOfRun = ({ status, is_wait: isWait, waiting_for: awaited }: Waiting): string =>
  isWait && awaited !== null ? 'waiting' : status

/** The awaited thing with the provider's own words, or the reason of a pause; null for any other run. */
export function waitWords(run: Waiting): string | null {
  if (!run.is_wait || run.waiting_for === null) return run.pause_reason?.replaceAll('_', ' ') ?? null
  return `waits for ${run.waiting_for}${providerWords(run) ?? ''}`
}
