// Runs whose tools no live process has. A run is found when it is ready and a process that could take it lacks a tool:
// if no other process has the tools either, the run waits, without an attempt or a crash, until one has them.
//
//  ready ── no live process has its tools ──► waits for a tool ── a process has them, or the agent changed ──► ready
//
// The status of the run stays as it was: queued, or running or paused without an owner. `tool_waits` has one row for each
// agent with such runs, so that a sweep looks at few rows however many runs wait.
import { MARK_CHANGED } from '../db/changed-in.ts'
import type { Db, Pool } from '../db/pool.ts'
import { inTransaction } from '../db/transaction.ts'
import { somebodyHasTools } from '../queue/process-names.ts'
import { SUSPECT_AFTER } from '../queue/queue-table.ts'
import { wakeAbove } from './wake.ts'

/** The runs that may have to wait: those that a claim refused, or some that are ready. */
export type Candidates = { ids: readonly string[] } | { projectId: string } | 'suspects' | 'any'

/** A look at ready runs is short, however many there are; the next look finds the others. */
const MAX_LOOKED_AT = 50
const MAX_WOKEN = 5_000

/** One process at a time changes these waits: a wait that begins must not be taken for one that has ended. */
const LOCK = `select pg_advisory_xact_lock(hashtextextended('muster.tool_waits', 0))`

/** Lets runs wait whose tools no live process has. Returns their number. */
export async function waitForTools(pool: Pool, candidates: Candidates): Promise<number> {
  if (typeof candidates === 'object' && 'ids' in candidates && candidates.ids.length === 0) return 0
  return inTransaction(pool, async (tx) => {
    const ids = await lackingTools(tx, candidates)
    if (ids.length === 0) return 0
    await tx.query(LOCK)
    const { rowCount } = await tx.query(BEGIN_WAITS, [ids])
    return rowCount ?? 0
  })
}

const NEEDS = (row: string): string => `case when ${row}.agent_id is null then muster.tools_of_part(${row}.part)
  else (select a.needs from agents a where a.id = ${row}.agent_id and a.deleted_at is null) end`

const IS_READY = 'ready_at is not null and owner is null and cancel_requested_at is null and answer is null'

/** SQL for ready runs with their needs, if no live process can take them. */
const lacking = (from: string): string => `
  select r.id, r.project_id, coalesce(r.agent_id, r.id) as waiter_id, n.needs
  from (${from}) r cross join lateral (select ${NEEDS('r')} as needs) n
  where n.needs <> '{}' and not ${somebodyHasTools('n.needs')}`

const COLUMNS = 'id, project_id, agent_id, part'

async function lackingTools(tx: Db, candidates: Candidates): Promise<string[]> {
  const [where, values] = whereOf(candidates)
  const { rows } = await tx.query<{ id: string }>(
    lacking(`select ${COLUMNS} from agent_runs where ${IS_READY} and ${where} limit ${MAX_LOOKED_AT}`),
    values,
  )
  return rows.map((row) => row.id)
}

function whereOf(candidates: Candidates): [where: string, values: unknown[]] {
  if (candidates === 'suspects') return [`crashes >= ${SUSPECT_AFTER} order by ready_at`, []]
  if (candidates === 'any') return [`crashes < ${SUSPECT_AFTER} order by project_id`, []]
  if ('ids' in candidates) return ['id = any($1::uuid[])', [candidates.ids]]
  return [`crashes < ${SUSPECT_AFTER} and project_id = $1 order by priority desc, ready_at`, [candidates.projectId]]
}

/** The awaited tool is one that nobody has; if some process has each of them, the first by name. */
const BEGIN_WAITS = `
  with lacking as (
    ${lacking(`select ${COLUMNS} from agent_runs where id = any($1::uuid[]) and ${IS_READY} for update skip locked`)}
  ), awaiting as (
    select l.*, (select name from unnest(l.needs) as name order by ${somebodyHasTools('array[name]')}, name limit 1) as tool
    from lacking l
  ), noted as (
    insert into tool_waits (waiter_id, project_id, tool)
    select distinct on (waiter_id) waiter_id, project_id, tool from awaiting order by waiter_id
    on conflict (waiter_id) do nothing
  )
  update agent_runs r set ready_at = null, wake_at = null, waits_for = 'tool', waiting_for = 'tool ' || a.tool,
    tool_wait_since = muster.now(), ${MARK_CHANGED}
  from awaiting a where r.id = a.id`

/** SQL: the waiter `t` has runs that wait. */
const HAS_RUNS = `exists (select from agent_runs r where r.waits_for = 'tool' and coalesce(r.agent_id, r.id) = t.waiter_id)`

/** SQL for the needs of a waiter; null if its agent was deleted. */
const NEEDS_OF_WAITER = `coalesce(
  (select a.needs from agents a where a.id = t.waiter_id and a.deleted_at is null),
  (select muster.tools_of_part(r.part) from agent_runs r where r.id = t.waiter_id))`

/**
 * Wakes the runs whose tools a live process has again, the runs above that stood still with them, and those whose agent needs the tool no more. `close` is given
 * the tasks about tools that no run waits for any more. Returns the number of runs.
 */
export async function endToolWaits(
  pool: Pool,
  close: (tx: Db, taskIds: readonly string[]) => Promise<void>,
): Promise<number> {
  const woken = await endWaits(pool, close)
  const below = woken.filter((run) => run.is_below)
  if (below.length > 0) await wakeAbove(pool, { runIds: below.map((run) => run.id) })
  return woken.length
}

type WokenRun = { id: string; is_below: boolean }

async function endWaits(pool: Pool, close: (tx: Db, taskIds: readonly string[]) => Promise<void>): Promise<WokenRun[]> {
  return inTransaction(pool, async (tx) => {
    await tx.query(LOCK)
    const { rows: over } = await tx.query<{ waiter_id: string }>(
      `select t.waiter_id from tool_waits t cross join lateral (select ${NEEDS_OF_WAITER} as needs) n
       where n.needs is null or t.tool <> all(n.needs) or ${somebodyHasTools('n.needs')} or not ${HAS_RUNS}`,
    )
    if (over.length === 0) return []
    const ids = over.map((row) => row.waiter_id)
    const { rows: woken } = await tx.query<WokenRun>(WAKE, [ids, MAX_WOKEN])
    const { rows: ended } = await tx.query<{ task_id: string | null }>(
      `delete from tool_waits t where waiter_id = any($1::uuid[]) and not ${HAS_RUNS} returning task_id`,
      [ids],
    )
    const { rows: open } = await tx.query<{ task_id: string }>('select distinct task_id from tool_waits')
    const still = new Set(open.map((row) => row.task_id))
    const taskIds = ended.flatMap(({ task_id: id }) => (id !== null && !still.has(id) ? [id] : []))
    if (taskIds.length > 0) await close(tx, taskIds)
    return woken
  })
}

/** A run that was paused has the whole pause in its journal; the wait of any other run is added up here. */
const WAKE = `
  update agent_runs set ready_at = muster.now(), waits_for = null, waiting_for = null, ${MARK_CHANGED},
    waited = waited + case when status = 'running'
      then extract(epoch from muster.now() - tool_wait_since) * 1000 else 0 end
  where id in (
    select id from agent_runs where waits_for = 'tool' and coalesce(agent_id, id) = any($1::uuid[]) limit $2
    for update skip locked
  )
  returning id, parent_run_id is not null or flow_run_id is not null as is_below`

export interface LongToolWait {
  project_id: string
  tool: string
  /** The agents whose runs wait, by name; a specialist by the name of its part. */
  agents: { id: string | null; name: string }[]
}

/** Tools that were awaited for an hour, of which people were not told; `ask` makes the task and returns its id. */
export async function tellOfLongWaits(
  pool: Pool,
  ask: (tx: Db, wait: LongToolWait) => Promise<string>,
): Promise<number> {
  return inTransaction(pool, async (tx) => {
    await tx.query(LOCK)
    const { rows } = await tx.query<LongToolWait & { task_id: string | null }>(LONG_WAITS)
    for (const { task_id: known, ...wait } of rows) {
      const taskId = known ?? (await ask(tx, wait))
      await tx.query('update tool_waits set task_id = $3 where project_id = $1 and tool = $2 and task_id is null', [
        wait.project_id,
        wait.tool,
        taskId,
      ])
    }
    return rows.length
  })
}

/** One row for each tool of a project; agents that joined the wait later belong to the task that people have. */
const LONG_WAITS = `
  select t.project_id, t.tool, (array_agg(t.task_id) filter (where t.task_id is not null))[1] as task_id,
    jsonb_agg(jsonb_build_object('id', a.id, 'name', coalesce(a.name, r.part->>'node', ''))) as agents
  from tool_waits t left join agents a on a.id = t.waiter_id left join agent_runs r on r.id = t.waiter_id
  where ${HAS_RUNS} group by t.project_id, t.tool
  having bool_or(t.task_id is null) and min(t.since) <= muster.now() - interval '1 hour'`

/** SQL for a look of a sweep: some runs wait for tools. */
export const AWAITS_TOOLS = 'exists (select from tool_waits)'
