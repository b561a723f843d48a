import type { Db } from '../db/pool.ts'
import { type JournalEvent, replayEvents } from '../journal/read.ts'
import { type CallCounts, callKey, countCall, identityOf } from '../kernel/call-key.ts'
import type { RunEvent } from '../kernel/run-event.ts'
import { applyEvent, newState, type RunState } from './run-state.ts'

interface Origin {
  id: string
  base_run_id: string | null
  base_seq: number | null
  forked_from?: string | null
  /** The last event of the journal that is read; without it the whole journal is read. */
  up_to?: number
}

/** The state of a run after its journal, and after the journals of the runs it continues. */
export async function loadState(db: Db, run: Origin): Promise<RunState> {
  const state = newState()
  for (const { runId, upTo, isFork } of await chainOf(db, run)) {
    if (isFork) giveOwnKeys(state, runId)
    for await (const { kind, data, at } of replayEvents(db, runId, upTo)) {
      applyEvent(state, { kind, data } as unknown as RunEvent, at.getTime()) // written by us; unknown kinds are ignored
    }
  }
  return state
}

/** The events of a run, after those of the runs it continues. */
export async function* replayHistory(db: Db, run: Origin): AsyncGenerator<JournalEvent> {
  for (const { runId, upTo } of await chainOf(db, run)) yield* replayEvents(db, runId, upTo)
}

/** A fork deliberately repeats the calls that its original announced: as effects of its own, under keys of its own. */
function giveOwnKeys(state: RunState, runId: string): void {
  const counts: CallCounts = new Map()
  for (const call of state.pending.values()) {
    const identity = identityOf(call)
    Object.assign(call, {
      key: callKey(runId, identity, countCall(counts, identity)),
      ref: `${runId}:${call.ref}`,
      attempt: 1,
      isUnknown: false,
      cutOff: null,
      approval: call.approval && { ...call.approval, isApproved: false, by: null },
      written: null,
    })
  }
}

interface Link {
  runId: string
  upTo?: number
  isFork: boolean
}

/** The run and the runs that its history comes from, oldest first. */
async function chainOf(db: Db, run: Origin): Promise<Link[]> {
  const linkOf = (runId: string, upTo: number | null | undefined, origin?: Pick<Origin, 'forked_from'>): Link => ({
    runId,
    ...(upTo === null || upTo === undefined ? {} : { upTo }),
    isFork: typeof origin?.forked_from === 'string',
  })
  const chain = [linkOf(run.id, run.up_to, run)]
  let { base_run_id: baseId, base_seq: baseSeq } = run
  while (baseId !== null) {
    const { rows } = await db.query<Origin>(
      'select id, base_run_id, base_seq, forked_from from agent_runs where id = $1',
      [baseId],
    )
    chain.unshift(linkOf(baseId, baseSeq, rows[0]))
    baseId = rows[0]?.base_run_id ?? null
    baseSeq = rows[0]?.base_seq ?? null
  }
  return chain
}
