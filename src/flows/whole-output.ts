import type { Db } from '../db/pool.ts'

/** Read together at most, so that a run that gave gigabytes is never held at once. */
const MOST_BYTES_AT_ONCE = 4_194_304

/** What a flow run gave, however large, as JSON in pieces. */
export async function* writeOutput(db: Db, runId: string): AsyncGenerator<string> {
  const { rows } = await db.query<{ text: string | null }>('select output::text as text from flow_runs where id = $1', [
    runId,
  ])
  yield rows[0]?.text ?? 'null'
}

/** What each leaf with an id gave last. */
export async function* writeResults(db: Db, runId: string): AsyncGenerator<string> {
  const { rows } = await db.query<ResultRow>(
    `select distinct on (data->>'node_id') data->>'node_id' as node_id, seq, data->>'task_id' as task_id,
       data->>'on_record' as on_record, octet_length((data->'result')::text) as bytes
     from flow_events where run_id = $1 and kind = 'task.completed' and data->>'node_id' is not null
     order by data->>'node_id', seq desc`,
    [runId],
  )
  yield '{'
  let separator = ''
  for (const { node_id, task_id, on_record } of rows) {
    if (on_record !== 'items') continue
    yield `${separator}${JSON.stringify(node_id)}:`
    yield* writeItems(db, runId, task_id)
    separator = ','
  }
  for (const together of inParts(rows.filter((row) => row.on_record !== 'items'))) {
    const { rows: values } = await db.query<{ node_id: string; text: string | null }>(
      `select data->>'node_id' as node_id, (data->'result')::text as text from flow_events
       where run_id = $1 and seq = any($2::bigint[]) order by seq`,
      [runId, together.map((row) => row.seq)],
    )
    for (const { node_id, text } of values) {
      yield `${separator}${JSON.stringify(node_id)}:${text ?? 'null'}`
      separator = ','
    }
  }
  yield '}'
}

interface ResultRow {
  node_id: string
  task_id: string
  seq: number
  bytes: number
  on_record: 'pages' | 'items' | null
}

/** What the last stage of a pipeline gave, page by page. */
async function* writeItems(db: Db, runId: string, taskId: string): AsyncGenerator<string> {
  const { rows } = await db.query<{ seq: number }>(
    `with given as (
       select seq, (data->>'stage')::int as stage from flow_events
       where run_id = $1 and kind = 'items.completed' and data->>'task_id' = $2
     ) select seq from given where stage = (select max(stage) from given) order by seq`,
    [runId, taskId],
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

function inParts<Row extends { bytes: number }>(rows: readonly Row[]): Row[][] {
  const parts: Row[][] = []
  let left = 0
  for (const row of rows) {
    if (row.bytes > left || parts.length === 0) {
      parts.push([])
      left = MOST_BYTES_AT_ONCE
    }
    parts.at(-1)?.push(row)
    left -= row.bytes
  }
  return parts
}
