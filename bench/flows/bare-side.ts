// The ceiling of flows: the same rows are inserted once more, into tables with the same columns and indexes, in the
// same commits. Fifty flows go in lock step: their rows are one multi-row insert, then the first appends of all flows
// are one insert, then the second appends, and no batch can be larger with fifty flows. All other work of a flow is
// left out: the audit entry, the fence, seq and projection taken from the row, and the leaves. Serialising the rows
// counts, because any program must do it. One batch is written at a time, as in the ceiling of runs.
import pg from 'pg'
import { answerQuestions } from '../kit/side.ts'

export interface BareQuestion {
  flowRunIds: readonly string[]
  inFlight: number
}

export interface BareAnswer {
  seconds: number
  flows: number
  commits: number
}

interface FlowRow {
  id: string
  project_id: string
  root: unknown
  input: unknown
  timeout: number
  progress: unknown
}

interface EventRow {
  run_id: string
  seq: string
  id: string
  kind: string
  data: unknown
  at: string
}

type Statement = { name: string; text: string; values: unknown[] }

const INSERT_FLOWS = {
  name: 'bare_flows',
  text: `insert into public.bare_flow_runs (id, project_id, root, input, timeout, progress)
    select * from rows from (unnest($1::uuid[]), unnest($2::uuid[]), jsonb_array_elements($3::jsonb),
      jsonb_array_elements($4::jsonb), unnest($5::int[]), jsonb_array_elements($6::jsonb))`,
}
const INSERT_EVENTS = {
  name: 'bare_events',
  text: `insert into public.bare_flow_events (run_id, seq, id, kind, data)
    select * from rows from (unnest($1::uuid[]), unnest($2::bigint[]), unnest($3::uuid[]), unnest($4::text[]),
      jsonb_array_elements($5::jsonb))`,
}
const [url = ''] = process.argv.slice(2)
const client = new pg.Client({ connectionString: url })
await client.connect()
await client.query('create table if not exists public.bare_flow_runs (like flow_runs including all)')
await client.query('create table if not exists public.bare_flow_events (like flow_events including all)')

answerQuestions<BareQuestion>(async ({ flowRunIds, inFlight }): Promise<BareAnswer> => {
  const flows = await readFlows(flowRunIds)
  let commits = 0
  const began = performance.now()
  for (let from = 0; from < flows.length; from += inFlight) {
    for (const statement of inLockStep(flows.slice(from, from + inFlight))) {
      await client.query(statement)
      commits++
    }
  }
  return { seconds: (performance.now() - began) / 1_000, flows: flows.length, commits }
})

interface Flow {
  row: FlowRow
  appends: EventRow[][]
}

async function readFlows(flowRunIds: readonly string[]): Promise<Flow[]> {
  const { rows } = await client.query<FlowRow>(
    `select id, project_id, root, input, timeout, progress from flow_runs
     where id = any($1::uuid[])`,
    [flowRunIds],
  )
  const { rows: events } = await client.query<EventRow>(
    `select run_id, seq, id, kind, data, at::text from flow_events where run_id = any($1::uuid[]) order by run_id, seq`,
    [flowRunIds],
  )
  const byFlow = Map.groupBy(events, (event) => event.run_id)
  return rows.map((row) => ({ row, appends: appendsOf(byFlow.get(row.id) ?? []) }))
}

/** The appends as they were committed; events that were written together have the same instant. */
function appendsOf(events: readonly EventRow[]): EventRow[][] {
  const appends: EventRow[][] = []
  for (const event of events) {
    const last = appends.at(-1)
    if (last?.[0]?.at === event.at) last.push(event)
    else appends.push([event])
  }
  return appends
}

function* inLockStep(flows: readonly Flow[]): Generator<Statement> {
  yield { ...INSERT_FLOWS, values: valuesOfFlows(flows.map((flow) => flow.row)) }
  const longest = Math.max(...flows.map(({ appends }) => appends.length))
  for (let place = 0; place < longest; place++) yield toInsert(flows.flatMap(({ appends }) => appends[place] ?? []))
}

const toInsert = (events: readonly EventRow[]): Statement => ({
  ...INSERT_EVENTS,
  values: [
    events.map((event) => event.run_id),
    events.map((event) => event.seq),
    events.map((event) => event.id),
    events.map((event) => event.kind),
    listOf(events.map((event) => event.data)),
  ],
})

const valuesOfFlows = (rows: readonly FlowRow[]): unknown[] => [
  rows.map((row) => row.id),
  rows.map((row) => row.project_id),
  listOf(rows.map((row) => row.root)),
  listOf(rows.map((row) => row.input)),
  rows.map((row) => row.timeout),
  listOf(rows.map((row) => row.progress)),
]

const listOf = (values: readonly unknown[]): string => JSON.stringify(values)
