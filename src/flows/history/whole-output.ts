import type { Db } from '../../db/pool.ts'
import { TOLD_RESULTS } from './flow-runs.ts'

/** The output of a flow run, of any size, as JSON in pieces. */
export async function* writeOutput(db: Db, runId: string): AsyncGenerator<string> {
  const { rows } = await db.query<{ text: string | null }>('select output::text as text from flow_runs where id = $1', [
    runId,
  ])
  yield rows[0]?.text ?? 'null'
}

/** The last result of each leaf with an id; the results of the parts of a list are a list. */
export async function* writeResults(db: Db, runId: string): AsyncGenerator<string> {
  const { rows } = await db.query<ResultRow>(
    `with told as (${TOLD_RESULTS}), last as (
       select distinct on (node_id) * from told order by node_id, seq desc
     )
     select l.node_id, l.task_id, l.on_record, l.part_of is not null as is_list, array(
       select t.seq::int from told t where t.node_id = l.node_id
         and (t.seq = l.seq or t.part_of = l.part_of) order by t.place) as seqs
     from last l`,
    [[runId]],
  )
  yield '{'
  let separator = ''
  for (const { node_id, task_id, on_record, is_list, seqs } of rows) {
    yield `${separator}${JSON.stringify(node_id)}:${is_list ? '[' : ''}`
    if (on_record === 'items') yield* writeItems(db, runId, task_id)
    else yield* writeEach(db, runId, seqs)
    yield is_list ? ']' : ''
    separator = ','
  }
  yield '}'
}

/** Results are read one at a time, so that gigabytes of them are never held at once. */
async function* writeEach(db: Db, runId: string, seqs: readonly number[]): AsyncGenerator<string> {
  for (const [place, seq] of seqs.entries()) {
    const { rows } = await db.query<{ text: string | null }>(
      `select (data->'result')::text as text from flow_events where run_id = $1 and seq = $2`,
      [runId, seq],
    )
    yield `${place === 0 ? '' : ','}${rows[0]?.text ?? 'null'}`
  }
}

interface ResultRow {
  node_id: string
  task_id: string
  on_record: 'pages' | 'items' | null
  is_list: boolean
  seqs: number[]
}

async function* writeItems(db: Db, runId: string, leafId: string): AsyncGenerator<string> {
  const { rows } = await db.query<{ seq: number }>(
    `with given as (
       select seq, (data->>'stage')::int as stage from flow_events
       where run_id = $1 and kind = 'items.completed' and data->>'task_id' = $2
     ) select seq from given where stage = (select max(stage) from given) order by seq`,
    [runId, leafId],
  )
  yield '['
  let separator = ''
  for (const { seq } of rows) {
    const { rows: items } = await db.query<{ text: string }>(
      `select (item->1)::text as text from flow_events,
         jsonb_array_elements(data->'results') with ordinality as given (item, place)
       where run_id = $1 and seq = $2 order by place`,
      [runId, seq],
    )
    for (const { text } of items) {
      yield `${separator}${text}`
      separator = ','
    }
  }
  yield ']'
}
