import type { Db, PreparedSql } from '../../db/pool.ts'
import { unitOf } from '../machine/leaf-id.ts'
import type { ReadRecord } from './parts.ts'
import { type PipelineEvent, pipelineEventKinds } from './pipeline-event.ts'

/** A page is short, because an event may hold a mebibyte or more. */
const EVENTS_PER_PAGE = 20

const READ: PreparedSql = {
  name: 'pipeline_record',
  text: `
    select seq, kind, data from flow_events
    where run_id = $1 and seq > $2 and kind = any($3) and data->>'task_id' = $4
      and ($5::int is null or (data->>'stage')::int = $5)
    order by seq limit ${EVENTS_PER_PAGE}`,
}

/** A life of a pipeline: the flow run and the id of the leaf. */
interface Life {
  flowRunId: string
  leafId: string
}

/** Failures of earlier lives do not count: the items that failed are tried again. */
const TAKEN_OVER = ['source.page', 'items.completed', 'items.skipped'] as const satisfies PipelineEvent['kind'][]

/** Reads the items of earlier lives first. An item on record in one of them is never worked on again. */
export function createRecordReader(db: Db, own: Life, earlier: readonly Life[]): ReadRecord {
  return async function* (only) {
    for (const life of earlier) yield* eventsOf(db, life, only ? ['items.completed'] : TAKEN_OVER, only)
    yield* eventsOf(db, own, only ? ['items.completed'] : pipelineEventKinds, only)
  }
}

async function* eventsOf(
  db: Db,
  { flowRunId, leafId }: Life,
  kinds: readonly string[],
  only: { stage: number } | undefined,
): AsyncGenerator<PipelineEvent> {
  let after = 0
  for (;;) {
    const values = [flowRunId, after, kinds, leafId, only?.stage ?? null]
    const { rows } = await db.query<PipelineEvent & { seq: number }>(READ, values)
    yield* rows
    const last = rows.at(-1)
    if (!last || rows.length < EVENTS_PER_PAGE) return
    after = last.seq
  }
}

/** The earlier lives of the pipeline, oldest first: in this flow run, and in those that it resumes. */
export async function earlierPipelines(db: Db, flowRunIds: readonly string[], own: Life): Promise<Life[]> {
  if (flowRunIds.length === 1 && unitOf(own.leafId) === own.leafId) return []
  const { rows } = await db.query<{ run_id: string; leaf_id: string }>(
    `select run_id, data->>'task_id' as leaf_id from flow_events
     where run_id = any($1::uuid[]) and kind = 'pipeline.started'
     group by 1, 2 order by array_position($1::uuid[], run_id), min(seq)`,
    [flowRunIds],
  )
  return rows
    .map(({ run_id: flowRunId, leaf_id: leafId }) => ({ flowRunId, leafId }))
    .filter(
      ({ flowRunId, leafId }) =>
        unitOf(leafId) === unitOf(own.leafId) && !(flowRunId === own.flowRunId && leafId === own.leafId),
    )
}
