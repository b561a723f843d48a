import { createBatches } from '../../db/batches.ts'
import type { Db, PreparedSql } from '../../db/pool.ts'
import { plainArray } from '../../journal/plain-array.ts'
import type { CheckpointKey } from './write-checkpoints.ts'

/** The texts are JSON as plain-values.ts writes it. */
export interface StoredCheckpoint {
  threadId: string
  checkpointNs: string
  checkpointId: string
  parentId: string | null
  checkpoint: string
  metadata: string
  /** An object with the value of each channel that is not empty. */
  values: string | null
  /** A list of [task id, channel, value], in the order of tasks and their writes. */
  writes: string | null
}

/** Each value is looked up by its key, whatever the statistics of the tables say. */
const COLUMNS = `
  c.thread_id as "threadId", c.checkpoint_ns as "checkpointNs", c.checkpoint_id as "checkpointId",
  c.parent_id as "parentId", c.checkpoint::text, c.metadata::text,
  (select json_object_agg(e.key, v.value)::text
   from json_each_text(c.checkpoint->'channel_versions') e cross join lateral (
     select value from supervisor_channels v
     where v.project_id = c.project_id and v.thread_id = c.thread_id and v.checkpoint_ns = c.checkpoint_ns
       and v.channel = e.key and v.version = e.value limit 1) v) as values,
  (select json_agg(json_build_array(w.task_id, w.channel, w.value) order by w.task_id, w.place)::text
   from supervisor_writes w
   where w.project_id = c.project_id and w.thread_id = c.thread_id and w.checkpoint_ns = c.checkpoint_ns
     and w.checkpoint_id = c.checkpoint_id) as writes`

/** With a null id, the newest checkpoint of the thread. */
export type CheckpointPlace = Omit<CheckpointKey, 'checkpointId'> & { checkpointId: string | null }

export type ReadCheckpoint = (place: CheckpointPlace) => Promise<StoredCheckpoint | null>

/** Checkpoints may be large, and one answer holds all of a batch. */
const READ_AT_ONCE = 20

/** Simultaneous reads share one statement: a single read took as long as all puts of a step. */
export const createReadCheckpoint = (db: Db): ReadCheckpoint =>
  createBatches((places) => readPlaces(db, places), { atOnce: READ_AT_ONCE })

const READ: PreparedSql = {
  name: 'read_checkpoints',
  text: `
    select k.place::int, ${COLUMNS}
    from rows from (unnest((select $1::uuid[])), json_array_elements_text($2::json), json_array_elements_text($3::json),
      json_array_elements_text($4::json)) with ordinality as k (project_id, thread_id, ns, id, place)
    cross join lateral (
      (select * from supervisor_checkpoints n
       where k.id is null and n.project_id = k.project_id and n.thread_id = k.thread_id and n.checkpoint_ns = k.ns
       order by n.checkpoint_id desc limit 1)
      union all
      (select * from supervisor_checkpoints n
       where n.project_id = k.project_id and n.thread_id = k.thread_id and n.checkpoint_ns = k.ns
         and n.checkpoint_id = k.id limit 1)) c`,
}

async function readPlaces(db: Db, places: readonly CheckpointPlace[]): Promise<(StoredCheckpoint | null)[]> {
  const { rows } = await db.query<StoredCheckpoint & { place: number }>(READ, [
    plainArray(places, ({ projectId }) => projectId),
    JSON.stringify(places.map(({ threadId }) => threadId)),
    JSON.stringify(places.map(({ checkpointNs }) => checkpointNs)),
    JSON.stringify(places.map(({ checkpointId }) => checkpointId)),
  ])
  const found = new Map(rows.map(({ place, ...row }) => [place, row]))
  return places.map((_, index) => found.get(index + 1) ?? null)
}

export interface CheckpointFilter {
  projectId: string
  threadId?: string
  checkpointNs?: string
  checkpointId?: string
  /** Only checkpoints with a smaller id. */
  before?: string
  /** JSON that the metadata must contain. */
  metadata?: string
  limit?: number
}

const PAGE = 20

/**
 * Lists checkpoints, newest first: those of one thread by id, those of all threads by the time of storing. Pages are
 * read when they are needed.
 */
export async function* listCheckpoints(db: Db, filter: CheckpointFilter): AsyncGenerator<StoredCheckpoint> {
  const order =
    filter.threadId === undefined
      ? 'created_at, checkpoint_id, thread_id, checkpoint_ns'
      : 'checkpoint_id, checkpoint_ns'
  let left = filter.limit ?? Number.POSITIVE_INFINITY
  let after: string[] | null = null
  while (left > 0) {
    const count = Math.min(left, PAGE)
    const { rows }: { rows: (StoredCheckpoint & { position: string[] })[] } = await db.query(
      ...pageOf(filter, order, after, count),
    )
    yield* rows.map(({ position: _, ...row }) => row)
    const last = rows.at(-1)
    if (!last || rows.length < count) return
    left -= count
    after = last.position
  }
}

function pageOf(
  filter: CheckpointFilter,
  order: string,
  after: readonly string[] | null,
  count: number,
): [sql: string, values: unknown[]] {
  const values: unknown[] = []
  const bound = (value: unknown): string => `$${values.push(value)}`
  const conditions = [
    `project_id = ${bound(filter.projectId)}`,
    filter.threadId !== undefined && `thread_id = ${bound(filter.threadId)}`,
    filter.checkpointNs !== undefined && `checkpoint_ns = ${bound(filter.checkpointNs)}`,
    filter.checkpointId !== undefined && `checkpoint_id = ${bound(filter.checkpointId)}`,
    filter.before !== undefined && `checkpoint_id < ${bound(filter.before)}`,
    filter.metadata !== undefined && `metadata::jsonb @> ${bound(filter.metadata)}::jsonb`,
    after && `(${order}) < (${after.map(bound).join(', ')})`,
  ].filter((condition) => typeof condition === 'string')
  const sql = `
    select ${COLUMNS}, array[${order.replace('created_at', 'created_at::text')}] as position
    from (
      select * from supervisor_checkpoints where ${conditions.join(' and ')}
      order by ${order
        .split(', ')
        .map((column) => `${column} desc`)
        .join(', ')} limit ${bound(count)}) c
    order by ${order
      .split(', ')
      .map((column) => `c.${column} desc`)
      .join(', ')}`
  return [sql, values]
}

/** The values that tasks of this checkpoint wrote to a channel: a JSON list, in the order of tasks and their writes. */
export async function readWrites(db: Db, key: CheckpointKey, channel: string): Promise<string> {
  const { rows } = await db.query<{ values: string }>(
    `select coalesce(json_agg(value order by task_id, place), '[]')::text as values from supervisor_writes
     where project_id = $1 and thread_id = $2 and checkpoint_ns = $3 and checkpoint_id = $4 and channel = $5`,
    [key.projectId, key.threadId, key.checkpointNs, key.checkpointId, channel],
  )
  return rows[0]?.values ?? '[]'
}
