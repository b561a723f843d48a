// Keeps facts about flow runs that take long to find (traces, metrics, topologies). The facts of an ended run are found
// once. Requests of the same moment share one answer.
import type { Db } from '../../db/pool.ts'
import { jsonSize } from '../../kernel/json-size.ts'
import { type FlowRunRow, flowHasEnded } from './flow-runs.ts'

export interface EndedRuns {
  /** `find` is called only if the fact is neither kept nor being found. Callers must not change its answer. */
  fact<Value>(what: string, run: FlowRunRow, find: () => Promise<Value>): Promise<Value>
}

/** The size of all kept facts, in bytes of JSON: some hundred runs of a thousand leaves. */
const MOST_BYTES = 33_554_432
/** A larger fact is found again each time, so that it does not take the place of all others. */
const LARGEST = MOST_BYTES / 4

export function createEndedRuns(db: Db, { mostBytes = MOST_BYTES, largest = LARGEST } = {}): EndedRuns {
  const kept = new Map<string, { value: unknown; bytes: number }>()
  const underWay = new Map<string, Promise<unknown>>()
  let keptBytes = 0

  async function find<Value>(name: string, run: FlowRunRow, work: () => Promise<Value>): Promise<Value> {
    const value = await work()
    if (!flowHasEnded(run) || !(await isSettled(db, run.id))) return value
    const { bytes } = jsonSize(value)
    if (bytes > largest) return value
    kept.set(name, { value, bytes })
    keptBytes += bytes
    for (const [oldest, entry] of kept) {
      if (keptBytes <= mostBytes) break
      kept.delete(oldest)
      keptBytes -= entry.bytes
    }
    return value
  }

  return {
    fact: async <Value>(what: string, run: FlowRunRow, work: () => Promise<Value>): Promise<Value> => {
      // Usage may be noted after the end: by functions that were left behind, and by sub-runs.
      const name = `${what} ${run.id} ${run.last_seq} ${run.input_tokens + run.output_tokens}`
      const known = kept.get(name)
      if (known) {
        kept.delete(name)
        kept.set(name, known)
        return known.value as Value // one name stands for one kind of value
      }
      const shared = underWay.get(name) ?? find(name, run, work).finally(() => underWay.delete(name))
      underWay.set(name, shared)
      return shared as Promise<Value> // like the value above
    },
  }
}

/** False while runs that a flow left behind when it was stopped still use tokens. */
async function isSettled(db: Db, flowRunId: string): Promise<boolean> {
  const { rowCount } = await db.query(
    'select from agent_runs where flow_run_id = $1 and completed_at is null limit 1',
    [flowRunId],
  )
  return rowCount === 0
}
