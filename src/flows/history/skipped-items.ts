// The items that a pipeline has given up, with their errors.
import type { Db } from '../../db/pool.ts'
import type { SkippedItem, TaskRecord } from './trace.ts'

const MOST_ITEMS = 100
const LONGEST_ERROR = 1_000

interface SkippedRow {
  task_id: string
  stage: number
  index: number
  error: string
}

/** The tasks of a flow run, those that are pipelines with their first skipped items. */
export async function withSkippedItems(db: Db, flowRunId: string, tasks: readonly TaskRecord[]): Promise<TaskRecord[]> {
  const pipelines = tasks.filter((task) => task.stages)
  if (pipelines.length === 0) return [...tasks]
  const ids = pipelines.map((task) => task.id)
  const rows = Map.groupBy(await readSkipped(db, flowRunId, ids), (row) => row.task_id)
  return tasks.map((task) => {
    const { stages } = task
    if (!stages) return task
    const skipped = (rows.get(task.id) ?? []).map(
      ({ index, stage, error }): SkippedItem => ({ index, stage: stages[stage] ?? stage, error }),
    )
    return { ...task, skipped: skipped.toSorted((one, other) => one.index - other.index) }
  })
}

/** The first of each pipeline in the order in which they were given up; a pipeline may have skipped a million. */
async function readSkipped(db: Db, flowRunId: string, leafIds: readonly string[]): Promise<SkippedRow[]> {
  const { rows } = await db.query<SkippedRow>(
    `select p.task_id, s.stage, s.index, s.error from unnest($2::text[]) as p (task_id) cross join lateral (
       select (e.data->>'stage')::int as stage, (i.entry->>0)::int as index, left(i.entry->>1, ${LONGEST_ERROR}) as error
       from (
         select seq, data from flow_events
         where run_id = $1 and kind = 'items.skipped' and data->>'task_id' = p.task_id order by seq limit ${MOST_ITEMS}
       ) e cross join lateral jsonb_array_elements(e.data->'errors') with ordinality as i (entry, place)
       order by e.seq, i.place limit ${MOST_ITEMS}
     ) s`,
    [flowRunId, leafIds],
  )
  return rows
}
