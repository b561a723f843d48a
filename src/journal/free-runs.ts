import { MARK_CHANGED } from '../db/changed-in.ts'
import type { Db } from '../db/pool.ts'
import { type Charge, charged, chargeValues } from '../queue/queue-table.ts'

export interface FreedRun {
  id: string
  ancestors: string[]
  crashes: number
  /** True if the owner's death counts as a crash of this run. */
  is_charged: boolean
  /** True for a sub-run that was claimed and has not written run.started yet. */
  is_silent: boolean
}

/** Runs of one owner ($1), runs of one owner but for those it works on ($2), or runs without a living owner. */
export type Which =
  | { of: 'owner'; owner: string }
  | { of: 'owner_elsewhere'; owner: string; inHand: readonly string[] }
  | { of: 'nobody' }

/** All three conditions use the index of owned runs. */
function find(which: Which): { where: string; values: unknown[] } {
  switch (which.of) {
    case 'owner':
      return { where: 'owner = $1', values: [which.owner] }
    case 'owner_elsewhere':
      return { where: 'owner = $1 and id <> all($2::uuid[])', values: [which.owner, which.inHand] }
    case 'nobody':
      return { where: 'owner is not null and not exists (select from workers w where w.id = owner)', values: [] }
  }
}

/** The ids of the runs, and those with the ids of their ancestors, which are written too. */
export async function findOwned(db: Db, which: Which): Promise<{ ids: string[]; withAncestors: string[] }> {
  const { where, values } = find(which)
  const { rows } = await db.query<{ id: string; ancestors: string[] }>(
    `select id, ancestors from agent_runs where ${where}`,
    values,
  )
  const ids = rows.map((row) => row.id)
  return { ids, withAncestors: [...new Set([...ids, ...rows.flatMap((row) => row.ancestors)])] }
}

/** Locks runs in the order in which appends lock them. */
export async function lockRuns(tx: Db, ids: readonly string[]): Promise<void> {
  await tx.query('select from agent_runs where id = any($1::uuid[]) order by id for update', [ids])
}

/**
 * Takes runs that still have no living owner from their old one, and makes them ready. The raised fence keeps an owner
 * that was only asleep from writing on; tokens reserved for a call under way go back to the agent.
 */
export async function freeRuns(
  tx: Db,
  ids: readonly string[],
  { owner, charge }: { owner: string | null; charge: Charge },
): Promise<FreedRun[]> {
  const { rows } = await tx.query<FreedRun>(
    `with freed as (
       select id, agent_id, payers, reserved, crashes from agent_runs where id = any($1::uuid[]) and completed_at is null
         and (owner = $4 or $4 is null and owner is not null and not exists (select from workers w where w.id = owner))
     ), given_back as (
       update agent_tokens t set reserved = t.reserved - f.reserved
       from (
         select agent_id, sum(reserved) as reserved from (
           select agent_id, reserved from freed union all select unnest(payers), reserved from freed) paid
         where reserved <> 0 group by agent_id
       ) f
       where t.agent_id = f.agent_id
     )
     update agent_runs r set owner = null, fence = r.fence + 1, reserved = 0, ready_at = muster.now(),
       crashes = ${charged('r')}, ${MARK_CHANGED}
     from freed f where r.id = f.id
     returning r.id, r.ancestors, r.crashes, r.crashes > f.crashes as is_charged, r.last_seq = 0 as is_silent`,
    [ids, ...chargeValues(charge, 'run'), owner],
  )
  return rows
}
