import type { StoredEvent } from '../journal/entries.ts'
import type { Log } from '../kernel/log.ts'

/**
 * Writes one line for each event that an operator may have to look into: a run that failed or paused, an item that a
 * pipeline skipped. Called after the commit; the words of people and models stay in the journal. flows/execution/end.ts
 * writes the line about a flow run that failed.
 */
export function logEvents(log: Log): (events: readonly StoredEvent[]) => void {
  return (events) => {
    for (const { runId, kind, data } of events) {
      if (!LOGGED.has(kind)) continue
      // An event of a sub-run is in the sub-run's own journal too.
      if (data.startsWith('{"run_id"')) continue
      const fields: Fields = JSON.parse(data)
      switch (kind) {
        case 'run.failed':
          log.warn({ run_id: runId, error_code: fields.error_code }, 'a run failed')
          break
        case 'run.paused':
          log.info({ run_id: runId, pause_reason: fields.pause_reason }, 'a run paused')
          break
        case 'items.skipped':
          for (const [index] of fields.errors ?? []) {
            const { task_id, stage } = fields
            log.info({ flow_run_id: runId, task_id, stage, index }, 'a pipeline skipped an item')
          }
          break
      }
    }
  }
}

const LOGGED: ReadonlySet<string> = new Set(['run.failed', 'run.paused', 'items.skipped'])

interface Fields {
  error_code?: string
  pause_reason?: string
  task_id?: string
  stage?: number
  errors?: [index: number, error: string][]
}
