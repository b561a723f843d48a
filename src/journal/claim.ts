import type { Db, PreparedSql } from '../db/pool.ts'

/** What a person said, at the resume, about a call whose outcome was unknown. */
export interface Settlement {
  call_id: string
  outcome: 'done' | 'not_done'
  result: unknown
}

/** A run that this process owns from now on, with what its loop needs to begin. */
export interface ClaimedRun {
  id: string
  project_id: string
  agent_id: string
  fence: number
  trigger: { type: string; settled?: Settlement }
  input: unknown
  step_count: number
  max_steps: number | null
  timeout: number | null
  parent_run_id: string | null
  resumed_from: string | null
  forked_from: string | null
  base_run_id: string | null
  base_seq: number | null
  last_seq: number
  depth: number
  ancestors: string[]
  rights: Record<string, unknown>
  /** How many runs led to this one, each started by a change that the one before had made. */
  chain_depth: number
  /** The run decides something: it answers JSON of this shape, without tools. */
  answer: { name: string; schema: Record<string, unknown> } | null
  crashes: number
  reserved: number
  summary: string | null
  waits_for: string | null
  cancel_requested_at: Date | null
  /** Milliseconds since it was started, by the database's clock. */
  age: number
  /** Never claimed before: there is nothing to replay. */
  is_new: boolean
  was_paused: boolean
  /** When its agent and its project were changed last: definitions that were read since then still hold. */
  agent_changed: number | null
  project_changed: number
}

/** Runs that took a process with them before are taken alone. */
export const SUSPECT_AFTER = 2

/**
 * Claims raise the fence and write run.started or run.continued, in one statement for as many runs as there are free
 * slots. (A sub-run's owner appends that event itself, because it goes to the ancestors too.) A backlog costs nothing: the index is in claim order and locked rows are skipped.
 * Who was declared dead claims nothing before it has a new name.
 */
const CLAIM: PreparedSql = {
  name: 'run_claim',
  text: `
    with picked as (
      select id, status, waits_for, last_seq from agent_runs
      where ready_at <= muster.now() and (crashes >= ${SUSPECT_AFTER}) = $3
        and exists (select from workers where id = $1)
      order by priority desc, ready_at limit $2 for update skip locked
    ), claimed as (
      update agent_runs r set
        owner = $1, fence = r.fence + 1, ready_at = null, waits_for = null, status = 'running', pause_reason = null,
        started_at = coalesce(r.started_at, muster.now()),
        last_seq = r.last_seq + (r.ancestors = '{}' and (p.last_seq = 0 or p.status = 'paused'))::int
      from picked p where r.id = p.id
      returning r.*, p.last_seq = 0 as is_new, p.status = 'paused' as was_paused, p.waits_for as waited_for
    ), noted as (
      insert into run_events (run_id, seq, id, kind, data)
      select id, last_seq, gen_random_uuid(), case when is_new then 'run.started' else 'run.continued' end,
        case when is_new then jsonb_strip_nulls(jsonb_build_object(
          'agent_id', agent_id, 'resumed_from', resumed_from, 'forked_from', forked_from)) || jsonb_build_object('input', input)
        else '{}' end
      from claimed where ancestors = '{}' and (is_new or was_paused)
    )
    select id, project_id, agent_id, fence, trigger, input, step_count, max_steps, timeout, parent_run_id, resumed_from,
      forked_from, base_run_id, base_seq, last_seq, depth, ancestors, rights, chain_depth, answer, crashes, reserved, summary,
      waited_for as waits_for, cancel_requested_at, is_new, was_paused,
      (extract(epoch from muster.now() - started_at) * 1000)::float8 as age,
      (select extract(epoch from a.updated_at)::float8 from agents a where a.id = c.agent_id and a.deleted_at is null)
        as agent_changed,
      (select extract(epoch from p.updated_at)::float8 from projects p where p.id = c.project_id) as project_changed
    from claimed c`,
}

export async function claimRuns(
  db: Db,
  { owner, limit, suspects }: { owner: string; limit: number; suspects: boolean },
): Promise<ClaimedRun[]> {
  const { rows } = await db.query<ClaimedRun>(CLAIM, [owner, limit, suspects])
  return rows
}

/** Whether a run that must be taken alone is waiting for a process. */
export async function isSuspectWaiting(db: Db): Promise<boolean> {
  const { rowCount } = await db.query(
    `select from agent_runs where ready_at <= muster.now() and crashes >= ${SUSPECT_AFTER} limit 1`,
  )
  return rowCount === 1
}

export async function countReady(db: Db): Promise<number> {
  const { rows } = await db.query<{ count: number }>(
    'select count(*)::int as count from agent_runs where ready_at <= muster.now()',
  )
  return rows[0]?.count ?? 0
}
