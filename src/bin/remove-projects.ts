// Deleted projects lose their rows here: table by table, in small batches, in one process at a time. After a crash the
// next process finds the remaining rows by the same indexes.
import { inBatches } from '../db/in-batches.ts'
import type { Db, Pool } from '../db/pool.ts'
import { removeUsageOf } from '../journal/usage-days.ts'
import { CHECKPOINT_TABLES, removeCheckpointsOf } from '../supervisor/checkpoints/remove-checkpoints.ts'

const ROWS_AT_ONCE = 500
/** Events, versions and results are deleted with their row, so their number bounds a batch, too. */
const EVENTS_AT_ONCE = 20_000
/** The column with the number of rows that are deleted with one row. */
const COUNTED_BY: Partial<Record<ProjectTable, string>> = {
  agent_runs: 'last_seq',
  flow_runs: 'last_seq + asked_calls',
  prompt_variants: 'version',
  evals: 'total',
}
/** The project's row stays this long, because it tells other processes of the deletion: each looks once a second. */
const TOLD_FOR_MS = 10_000

/**
 * Children come first, so that no delete cascades far: entries and edges before objects, runs before agents. Rows that
 * belong to a row of these tables (events, versions, alerts, rules, schedules …) are deleted with it by trigger or
 * foreign key.
 */
export const PROJECT_TABLES = [
  'processing_log',
  'relationships',
  'objects',
  'tasks',
  'agent_messages',
  'evals',
  'agent_runs',
  'flow_alerts',
  'flow_runs',
  'flows',
  'hooks',
  'agents',
  'prompt_variants',
  'mcp_servers',
  'api_keys',
  'members',
] as const

/**
 * Tables with few rows per project, or whose rows are deleted with their agent or run, or by a function of their own. A
 * row of app_projects stays and forgets the project.
 */
export const SMALL_TABLES = [
  'task_queues',
  'project_tokens',
  'project_calls',
  'usage_days',
  'tool_waits',
  'provider_waits',
  'systems',
  'chats',
  'app_projects',
] as const

type ProjectTable = (typeof PROJECT_TABLES)[number]

/** `signal` ends the work after the current batch. Returns the number of projects removed. */
export async function removeProjects(
  pool: Pool,
  { atOnce = ROWS_AT_ONCE, signal }: { atOnce?: number; signal?: AbortSignal } = {},
): Promise<number> {
  const { rows } = await pool.query<{ id: string }>(
    'select id from projects where deleted_at is not null order by deleted_at, id limit 100',
  )
  let gone = 0
  for (const { id } of rows) {
    const batches = { lock: 'projects', signal } as const
    const isOurs = await inBatches(pool, batches, async (tx) => (await removeDeliveries(tx, id, atOnce)) > 0)
    // Another process removes rows now.
    if (!isOurs) return gone
    await inBatches(pool, batches, async (tx) => (await removeCheckpointsOf(tx, id, atOnce)) > 0)
    await inBatches(pool, batches, async (tx) => (await removeUsageOf(tx, id, atOnce)) > 0)
    for (const table of PROJECT_TABLES) {
      await inBatches(pool, batches, async (tx) => (await removeRows(tx, table, id, atOnce)) > 0)
    }
    if (signal?.aborted) return gone
    await inBatches(pool, batches, async (tx) => {
      gone += await removeEmpty(tx, id)
      return false
    })
  }
  return gone
}

/** A row that is locked by another transaction is left for the next round: waiting for it could be a deadlock. */
async function removeRows(tx: Db, table: ProjectTable, projectId: string, atOnce: number): Promise<number> {
  // If one project has most of a table, a sequential scan would read the deleted rows again in every batch.
  await tx.query('set local enable_seqscan = off')
  const { rowCount } = await tx.query(
    `with taken as (
       select id, ${COUNTED_BY[table] ?? '0'} as below from ${table}
       where project_id = $1 limit $2 for update skip locked
     ), few as (
       select id from (select id, sum(below) over (order by id) - below as before from taken) t where before < $3
     )
     delete from ${table} where id in (select id from few)`,
    [projectId, atOnce, EVENTS_AT_ONCE],
  )
  return rowCount ?? 0
}

async function removeDeliveries(tx: Db, projectId: string, atOnce: number): Promise<number> {
  const { rowCount } = await tx.query(
    `delete from hook_deliveries where (hook_id, webhook_id) in (
       select d.hook_id, d.webhook_id from hooks h join hook_deliveries d on d.hook_id = h.id
       where h.project_id = $1 limit $2)`,
    [projectId, atOnce],
  )
  return rowCount ?? 0
}

/** Rows that a request wrote during the deletion are deleted in the next round, or by the foreign keys. */
async function removeEmpty(tx: Db, projectId: string): Promise<number> {
  const left = [...CHECKPOINT_TABLES, ...PROJECT_TABLES].map((table) => `select from ${table} where project_id = $1`)
  const { rowCount } = await tx.query(
    `delete from projects where id = $1 and deleted_at < muster.now() - $2 * interval '1 ms'
       and ${left.map((rows) => `not exists (${rows})`).join(' and ')}`,
    [projectId, TOLD_FOR_MS],
  )
  return rowCount ?? 0
}
