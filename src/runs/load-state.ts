import type { Db } from '../db/pool.ts'
import { replayEvents } from '../journal/read.ts'
import type { RunEvent } from '../kernel/run-event.ts'
import { applyEvent, newState, type RunState } from './run-state.ts'

interface Origin {
  id: string
  base_run_id: string | null
  base_seq: number | null
  /** The last event of the journal that is read; without it the whole journal is read. */
  up_to?: number
}

/** The state of a run after its journal, and after the journals of the runs it continues. */
export async function loadState(db: Db, run: Origin): Promise<RunState> {
  const state = newState()
  for (const { runId, upTo } of await chainOf(db, run)) {
    for await (const { kind, data, at } of replayEvents(db, runId, upTo)) {
      applyEvent(state, { kind, data } as unknown as RunEvent, at.getTime()) // written by us; unknown kinds are ignored
    }
  }
  return state
}

async function chainOf(db: Db, run: Origin): Promise<{ runId: string; upTo?: number }[]> {
  const own = run.up_to === undefined ? {} : { upTo: run.up_to }
  const chain: { runId: string; upTo?: number }[] = [{ runId: run.id, ...own }]
  let { base_run_id: baseId, base_seq: baseSeq } = run
  while (baseId !== null) {
    chain.unshift(baseSeq === null ? { runId: baseId } : { runId: baseId, upTo: baseSeq })
    const { rows } = await db.query<Origin>('select id, base_run_id, base_seq from agent_runs where id = $1', [baseId])
    baseId = rows[0]?.base_run_id ?? null
    baseSeq = rows[0]?.base_seq ?? null
  }
  return chain
}
