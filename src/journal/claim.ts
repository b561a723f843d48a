import { markChangedIf } from '../db/changed-in.ts'
import type { Db, Pool, PreparedSql } from '../db/pool.ts'
import { inTransaction } from '../db/transaction.ts'
import type { SystemPart } from '../kernel/supervisor.ts'
import { createClaims, promoteDueRows } from '../queue/queue-claims.ts'
import { type Dealt, type FairAsk, type QueueTable, SUSPECT_AFTER } from '../queue/queue-table.ts'

/** A person's answer, given at the resume, about a call whose outcome was unknown. */
export interface Settlement {
  call_id: string
  outcome: 'done' | 'not_done'
  result: unknown
}

export interface ClaimedRun {
  id: string
  project_id: string
  /** Null for a part of a supervisor system. */
  agent_id: string | null
  part: SystemPart | null
  fence: number
  trigger: {
    type: string
    settled?: Settlement | Settlement[]
    eval_id?: string
    /** Set for a run below a specialist of a supervisor. */
    behind_request?: true
    /** Set if a person asked for this attempt. */
    resumed_by?: 'person'
  }
  input: unknown
  step_count: number
  max_steps: number | null
  timeout: number | null
  parent_run_id: string | null
  /** The flow run whose leaf the run works on. */
  flow_run_id: string | null
  resumed_from: string | null
  forked_from: string | null
  base_run_id: string | null
  base_seq: number | null
  last_seq: number
  depth: number
  ancestors: string[]
  rights: Record<string, unknown>
  /** The scope of the keys of its calls; null means the run itself. */
  key_scope: string | null
  /** Agents above this run whose allocations its calls count for, too. */
  payers: string[]
  /** The number of runs that led to this one, each started by a change that the one before had made. */
  chain_depth: number
  /** Set for a run that makes a decision: the run answers JSON of this shape, without tools. */
  answer: { name: string; schema: Record<string, unknown> } | null
  task_id: string | null
  crashes: number
  reserved: number
  /** The number of occurrences so far that a run may wait for, such as a person's answer or the end of a sub-run. */
  signals: number
  summary: string | null
  waits_for: string | null
  cancel_requested_at: Date | null
  stop_requested_at: Date | null
  /** Milliseconds since the run was started, by the database's clock, without its waits for tools. */
  age: number
  /** The time of the claim in milliseconds, by the same clock. */
  claimed_at: number
  /** True if the run was never claimed before: there is nothing to replay. */
  is_new: boolean
  was_paused: boolean
  /** True if other agents report to the run's agent. */
  has_subordinates: boolean
  /** The last changes of the run's agent and of its project: definitions that were read since then still hold. */
  agent_changed: number | null
  project_changed: number
}

export const RUN_QUEUE: QueueTable = {
  table: 'agent_runs',
  kind: 'run',
  ready: 'ready_at is not null',
  owned: 'owner is not null',
  order: 'priority desc, ready_at',
  carried: ['status', 'waits_for', 'last_seq'],
}

/** The columns that a claim returns as they are. All columns of the table would take longer. */
const CLAIMED = `id project_id agent_id part fence trigger input step_count max_steps timeout parent_run_id flow_run_id
  resumed_from forked_from base_run_id base_seq last_seq depth ancestors rights key_scope payers chain_depth answer task_id
  crashes reserved signals summary cancel_requested_at stop_requested_at`.split(/\s+/)

/**
 * SQL: the process with the tools `known` may take the run `row`. Without a list it may take any run, and every process
 * may take a run that needs no tools: it decides something, or is only to be ended.
 *
 * The subselect is one lookup by the agent's key; as a join PostgreSQL may choose to read all agents.
 */
const hasToolsOf = (row: string, known: string): string => `(${known}::text[] is null or ${row}.answer is not null
  or ${row}.cancel_requested_at is not null
  or case when ${row}.agent_id is null then muster.tools_of_part(${row}.part) <@ ${known}::text[]
    else coalesce((select a.needs <@ ${known}::text[] or a.deleted_at is not null from agents a
      where a.id = ${row}.agent_id), true) end)`

/**
 * Raises the fence of the `picked` runs and writes run.started or run.continued. A sub-run's owner appends that event
 * itself, because it goes to the ancestors too.
 */
const claimed = (pick: string, columns: string, from: string, known: string): string => `
    ${pick}, claimed as (
      update agent_runs r set
        owner = $1, fence = r.fence + 1, ready_at = null, wake_at = null, waits_for = null, waiting_for = null,
        wait_message = null, status = 'running',
        pause_reason = null, started_at = coalesce(r.started_at, muster.now()),
        last_seq = r.last_seq + (r.ancestors = '{}' and (p.last_seq = 0 or p.status = 'paused'))::int,
        ${markChangedIf(`r.status <> 'running'`, 'r')}
      from picked p where r.id = p.id and r.id = any(array(select id from picked)) and ${hasToolsOf('r', known)}
      returning ${CLAIMED.map((column) => `r.${column}`)}, r.started_at, r.waited,
        p.last_seq = 0 as is_new, p.status = 'paused' as was_paused, p.waits_for as waited_for
    ), noted as (
      insert into run_events (run_id, seq, id, kind, data)
      select id, last_seq, gen_random_uuid(), case when is_new then 'run.started' else 'run.continued' end,
        case when is_new then jsonb_strip_nulls(jsonb_build_object('resumed_from', resumed_from, 'forked_from', forked_from))
          || case when trigger->>'type' = 'resume' or trigger ? 'resumed_by' then '{"is_reset": true}' else '{}'::jsonb end
          || jsonb_build_object('agent_id', agent_id, 'input', input)
        else '{}' end
      from claimed where ancestors = '{}' and (is_new or was_paused)
    )
    select ${CLAIMED.map((column) => `c.${column}`)}, waited_for as waits_for, is_new, was_paused,
      (extract(epoch from muster.now() - started_at) * 1000 - waited)::float8 as age,
      (extract(epoch from muster.now()) * 1000)::float8 as claimed_at,
      exists (select from agents s where s.senior_id = c.agent_id and s.deleted_at is null) as has_subordinates,
      (select extract(epoch from a.updated_at)::float8 from agents a where a.id = c.agent_id and a.deleted_at is null)
        as agent_changed,
      (select extract(epoch from p.updated_at)::float8 from projects p where p.id = c.project_id) as project_changed
      ${columns}
    from ${from}`

const { claim, releaseSuspect } = createClaims<ClaimedRun>(RUN_QUEUE, { name: 'run', around: claimed, isChecked: true })
const picky = createClaims<ClaimedRun>(RUN_QUEUE, {
  name: 'run_picky',
  around: claimed,
  mayTake: (known) => hasToolsOf('agent_runs', known),
  isChecked: true,
})

/** The tools of the process, by name. Null: any run may be taken. */
type KnownTools = readonly string[] | null

/** Claims fairly. `refused` are runs whose turn it was and whose tools this process lacks. */
export const claimRuns = (db: Db, ask: FairAsk, tools: KnownTools = null): Promise<Dealt<ClaimedRun>> =>
  claim(db, ask, tools)

/** Claims as `claimRuns` does, and passes over the runs whose tools this process lacks. It asks more projects. */
export const claimRunsWithTools = (db: Db, ask: FairAsk, tools: KnownTools): Promise<Dealt<ClaimedRun>> =>
  picky.claim(db, ask, tools)

export const claimSuspectRun = (
  db: Db,
  owner: string,
  lastProjectId: string,
  tools: KnownTools = null,
): Promise<ClaimedRun | null> => picky.claimSuspect(db, owner, lastProjectId, tools)

export const releaseSuspectRun = releaseSuspect

const CLAIM_OF_ONE: PreparedSql = {
  name: 'run_claim_of_one',
  text: claimed(
    `with picked as (
       select id, status, waits_for, last_seq from agent_runs where project_id = $2 and ${RUN_QUEUE.ready} and crashes < ${SUSPECT_AFTER}
         and exists (select from workers where id = $1) and ${hasToolsOf('agent_runs', '$4')}
       order by ${RUN_QUEUE.order} limit $3 for update skip locked
     )`,
    '',
    'claimed c',
    '$4',
  ),
}

interface CappedAsk {
  owner: string
  projectId: string
  limit: number
  cap: number
  tools?: KnownTools
}

/** Claims runs of a project with a cap. The project's row is locked, so that two processes do not pass the cap. */
export async function claimCappedRuns(
  pool: Pool,
  { owner, projectId, limit, cap, tools = null }: CappedAsk,
): Promise<ClaimedRun[]> {
  return inTransaction(pool, async (tx) => {
    const held = await tx.query('select from projects where id = $1 for no key update skip locked', [projectId])
    if (held.rowCount === 0) return []
    const { rows } = await tx.query<{ count: number }>(
      'select count(*)::int as count from agent_runs where owner is not null and project_id = $1',
      [projectId],
    )
    const room = Math.min(limit, cap - (rows[0]?.count ?? 0))
    if (room <= 0) return []
    return (await tx.query<ClaimedRun>(CLAIM_OF_ONE, [owner, projectId, room, tools])).rows
  })
}

/** The count is bounded because a request for metrics must not read a backlog of any length. */
export const MOST_COUNTED = 10_000

/** The number of runs that want a slot, counted up to `MOST_COUNTED`. Each part uses its claim's index. */
export async function countReady(db: Db): Promise<number> {
  const plain = `select from agent_runs where ${RUN_QUEUE.ready} and crashes < ${SUSPECT_AFTER} limit ${MOST_COUNTED}`
  const suspects = `select from agent_runs where ${RUN_QUEUE.ready} and crashes >= ${SUSPECT_AFTER} limit ${MOST_COUNTED}`
  const { rows } = await db.query<{ count: number }>(
    `select ((select count(*) from (${plain}) p) + (select count(*) from (${suspects}) s))::int as count`,
  )
  return Math.min(MOST_COUNTED, rows[0]?.count ?? 0)
}

export const promoteDueRuns = (db: Db): Promise<number> => promoteDueRows(db, RUN_QUEUE)
