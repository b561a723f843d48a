import type { Db } from '../db/pool.ts'

export interface FreedRun {
  id: string
  ancestors: string[]
  crashes: number
  /** A sub-run that was claimed and has not said yet that it starts. */
  is_silent: boolean
}

export type Which = 'owned' | 'owned_elsewhere' | 'ownerless'

const WHICH: Readonly<Record<Which, string>> = {
  owned: 'owner = $1',
  owned_elsewhere: 'owner = $1 and id <> all($2::uuid[])',
  ownerless: 'owner is not null and not exists (select from workers w where w.id = owner)',
}

/** Locks these runs and everything that is written with them, in the order in which appends lock. False: there are none. */
export async function lockRuns(tx: Db, which: Which, values: readonly unknown[]): Promise<boolean> {
  const { rowCount } = await tx.query(
    `select from agent_runs where (${WHICH[which]})
       or id in (select unnest(ancestors) from agent_runs where ${WHICH[which]}) order by id for update`,
    [...values],
  )
  return rowCount !== 0
}

/**
 * Takes runs from their owner and lets them want a slot again. The fence rises here already, which keeps an owner that
 * was only asleep from writing on; what it had reserved for a call under way goes back to its agent.
 */
export async function freeRuns(
  db: Db,
  which: Which,
  { crashes, values }: { crashes: 0 | 1; values: readonly unknown[] },
): Promise<FreedRun[]> {
  const { rows } = await db.query<FreedRun>(
    `with freed as (
       select id, agent_id, reserved from agent_runs where ${WHICH[which]} order by id for update
     ), given_back as (
       update agent_tokens t set reserved = t.reserved - f.reserved
       from (select agent_id, sum(reserved) as reserved from freed where reserved <> 0 group by agent_id) f
       where t.agent_id = f.agent_id
     )
     update agent_runs r set owner = null, fence = r.fence + 1, reserved = 0, ready_at = muster.now(),
       crashes = r.crashes + ${crashes}
     from freed f where r.id = f.id
     returning r.id, r.ancestors, r.crashes, r.last_seq = 0 as is_silent`,
    [...values],
  )
  return rows
}
