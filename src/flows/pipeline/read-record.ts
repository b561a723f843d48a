import type { Db, PreparedSql } from '../../db/pool.ts'
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

export function createRecordReader(db: Db, flowRunId: string, leafId: string): ReadRecord {
  return async function* (only) {
    const kinds = only ? ['items.completed'] : pipelineEventKinds
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
}
