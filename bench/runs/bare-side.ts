// The ceiling of the journal: the same rows are inserted once more, by one multi-row insert per batch into a table with
// the same columns and index, without a run's row, a fence, a seq or serialising. One batch is written at a time, as
// the journal does.
import pg from 'pg'
import { answerQuestions } from '../kit/side.ts'

export interface BareQuestion {
  runIds: readonly string[]
  /** The number of runs with an append in one batch. */
  inFlight: number
  /** The number of rows of each insert; by default one append of each run in flight. */
  batches?: readonly number[]
}

export interface BareAnswer {
  seconds: number
  events: number
}

interface Row {
  run_id: string
  seq: string
  id: string
  kind: string
  data: string
}

const INSERT = {
  name: 'bare',
  text: `insert into public.bare_events (run_id, seq, id, kind, data)
    select * from unnest($1::uuid[], $2::bigint[], $3::uuid[], $4::text[], $5::jsonb[])`,
}
const [url = ''] = process.argv.slice(2)
const client = new pg.Client({ connectionString: url })
await client.connect()
await client.query('create table if not exists public.bare_events (like run_events including all)')

answerQuestions<BareQuestion>(async ({ runIds, inFlight, batches }): Promise<BareAnswer> => {
  const inStep = inLockStep(await readAppends(runIds), inFlight)
  const rounds = batches ? cut(inStep.flat(), batches) : inStep
  const values = rounds.map(toValues)
  const began = performance.now()
  for (const list of values) await client.query({ ...INSERT, values: list })
  return { seconds: (performance.now() - began) / 1_000, events: inStep.flat().length }
})

/** The events of each run as they were committed: a step with the calls it asks for, a result, the end with its step. */
async function readAppends(runIds: readonly string[]): Promise<Row[][][]> {
  const { rows } = await client.query<Row>(
    `select run_id, seq, id, kind, data::text from run_events where run_id = any($1::uuid[]) order by run_id, seq`,
    [runIds],
  )
  const byRun = new Map<string, Row[][]>()
  for (const row of rows) {
    const appends = byRun.get(row.run_id) ?? []
    byRun.set(row.run_id, appends)
    const last = appends.at(-1)
    if (last && row.kind !== 'step.completed' && row.kind !== 'tool.completed') last.push(row)
    else appends.push([row])
  }
  return [...byRun.values()]
}

/** The first appends of this many runs are one batch, their second appends the next: the best case of group commit. */
function inLockStep(runs: readonly Row[][][], inFlight: number): Row[][] {
  const batches: Row[][] = []
  for (let from = 0; from < runs.length; from += inFlight) {
    const group = runs.slice(from, from + inFlight)
    const longest = Math.max(...group.map((appends) => appends.length))
    for (let place = 0; place < longest; place++) batches.push(group.flatMap((appends) => appends[place] ?? []))
  }
  return batches
}

function cut(rows: readonly Row[], sizes: readonly number[]): Row[][] {
  let from = 0
  return sizes.map((size) => {
    from += size
    return rows.slice(from - size, from)
  })
}

const toValues = (rows: readonly Row[]): unknown[] => [
  rows.map((row) => row.run_id),
  rows.map((row) => row.seq),
  rows.map((row) => row.id),
  rows.map((row) => row.kind),
  rows.map((row) => row.data),
]
