// The ids of traces and spans follow from the ids of runs. Every process that works on a run gives its spans the same
// places, and the address of a trace is known before any span was sent.
import { createHash } from 'node:crypto'

/** The place of a run in its trace. */
export interface TracePlace {
  traceId: string
  spanId: string
}

const digitsOf = (runId: string): string => runId.replaceAll('-', '').toLowerCase()

/** A run and its sub-runs are one trace, which has the id of the run at the top. */
export const traceIdOf = (rootRunId: string): string => digitsOf(rootRunId)

/** The second half of a run's id, which is the random one. */
export const spanIdOf = (runId: string): string => digitsOf(runId).slice(16)

export const partSpanId = (runId: string, part: string): string =>
  createHash('sha256').update(`${runId} ${part}`).digest('hex').slice(0, 16)
