// Flow runs as people read them: the row, and the results of its finished leaves, which stand in the journal alone.
import { listPage, type PageQuery } from '../../db/list-page.ts'
import type { Db } from '../../db/pool.ts'
import { selectByBeginning } from '../../db/select-by-beginning.ts'
import { selectByStatus } from '../../db/select-by-status.ts'
import { runNotFound } from '../../kernel/errors.ts'
import type { Page } from '../../kernel/fields.ts'
import { type FlowProgress, type FlowRun, type FlowRunStatus, flowRunStatuses } from '../../kernel/flow-run.ts'
import { isId } from '../../kernel/id.ts'
import { toUsage } from '../../runs/run-row.ts'
import { etaOf } from './eta.ts'
import { type ExpectedDuration, readExpectations } from './expectation.ts'

/** A larger value is not shown; the answer tells another way to get it. */
const MOST_BYTES = 1_048_576
/** The limit for a value in a list, whose items are many. */
const MOST_BYTES_IN_LIST = 65_536
/** A list reads no journal with more events than this. */
const LONGEST_IN_LIST = 1_000

export interface FlowRunRow {
  id: string
  project_id: string
  flow_id: string | null
  resumed_from: string | null
  resumed_as: string | null
  parent_run_id: string | null
  pattern: string
  status: FlowRunStatus
  input: unknown
  /** Null if the output is too large to be shown. */
  output: unknown
  is_large: boolean
  error: string | null
  progress: FlowProgress
  workers: number | null
  timeout: number
  created_at: Date
  started_at: Date | null
  completed_at: Date | null
  duration: number | null
  cancel_requested_at: Date | null
  last_seq: number
  input_tokens: number
  output_tokens: number
  usage_estimated: boolean
  cost_usd: number | null
  expected: number | null
  people_waits: number
  waited: number
  /** The time of the database's clock. */
  read_at: Date
}

// Stored values are compressed; a value that is too large even so is not written out to be measured. The database
// writes values out with spaces, hence twice the limit; values that pass are measured exactly.
const columns = (mostBytes: number): string => `id, project_id, flow_id, resumed_from,
  case when completed_at is not null then (select n.id from flow_runs n where n.resumed_from = flow_runs.id limit 1) end as resumed_as, parent_run_id, root->>'type' as pattern, status, input, error, progress, workers, timeout,
  created_at, started_at, completed_at, duration, cancel_requested_at, last_seq,
  input_tokens, output_tokens, usage_estimated, cost_usd, expected, people_waits, waited, muster.now() as read_at,
  ${isLarge('output', mostBytes)} as is_large, case when not ${isLarge('output', mostBytes)} then output end as output`
const isLarge = (value: string, mostBytes: number): string =>
  `coalesce(case when pg_column_size(${value}) > ${2 * mostBytes} then true
     else octet_length(${value}::text) > ${2 * mostBytes} end, false)`

export const flowHasEnded = ({ status }: { status: FlowRunStatus }): boolean =>
  status !== 'queued' && status !== 'running'

/** The kinds of events with which a journal ends. */
export const lastFlowKinds: ReadonlySet<string> = new Set(
  flowRunStatuses.filter((status) => flowHasEnded({ status })).map((status) => `flow.${status}`),
)

export interface FlowRunFilter {
  /** The first letters of the id. */
  id?: string | undefined
  flow_id?: string | undefined
  status?: FlowRunStatus | undefined
}

/** `usualWorkers`: the worker count of a run that was started without one. */
export async function getFlowRun(db: Db, projectId: string, runId: string, usualWorkers: number): Promise<FlowRun> {
  const row = await readFlowRow(db, projectId, runId)
  const resultsOf = await readResults(db, [row.id], MOST_BYTES)
  const expectationOf = await expectationsOf(db, [row])
  return toFlowRun(row, resultsOf(row), expectationOf(row), usualWorkers, MOST_BYTES)
}

export async function readFlowRow(db: Db, projectId: string, runId: string): Promise<FlowRunRow> {
  if (!isId(runId)) throw runNotFound()
  const { rows } = await db.query<FlowRunRow>(
    `select ${columns(MOST_BYTES)} from flow_runs where id = $1 and project_id = $2`,
    [runId, projectId],
  )
  const row = rows[0]
  if (!row) throw runNotFound()
  return row
}

/** The flow that a flow run was started from, and its tree as it was then. */
export async function readStarted(
  db: Db,
  projectId: string,
  runId: string,
): Promise<{ flowId: string | null; root: unknown }> {
  const { rows } = await db.query<{ flowId: string | null; root: unknown }>(
    'select flow_id as "flowId", root from flow_runs where id = $1 and project_id = $2',
    [runId, projectId],
  )
  const started = rows[0]
  if (!started) throw runNotFound()
  return started
}

export async function listFlowRuns(
  db: Db,
  projectId: string,
  filter: FlowRunFilter,
  query: PageQuery,
  usualWorkers: number,
): Promise<Page<FlowRun>> {
  const { id: beginning, status, flow_id } = filter
  const shown = columns(MOST_BYTES_IN_LIST)
  const ids = { project_id: projectId, flow_id }
  const page = await listPage<FlowRunRow, FlowRunRow>(db, {
    ...(beginning === undefined
      ? selectByStatus({
          select: `select ${shown} from flow_runs`,
          by: ids,
          among: { status: status === undefined ? flowRunStatuses : [status] },
        })
      : selectByBeginning({ columns: shown, table: 'flow_runs', beginning, among: ids, status })),
    query,
    toItem: (row) => row,
    largeColumns: ['input', 'error'],
  })
  const short = page.items.filter((row) => row.last_seq <= LONGEST_IN_LIST).map((row) => row.id)
  const resultsOf = await readResults(db, short, MOST_BYTES_IN_LIST)
  const expectationOf = await expectationsOf(db, page.items)
  const toItem = (row: FlowRunRow): FlowRun => {
    const gave = row.last_seq <= LONGEST_IN_LIST ? resultsOf(row) : null
    return toFlowRun(row, gave, expectationOf(row), usualWorkers, MOST_BYTES_IN_LIST)
  }
  return { ...page, items: page.items.map(toItem) }
}

/** The results of leaves with an id, in the runs $1. Parts of one list belong together, ordered by place. */
export const TOLD_RESULTS = `
  select run_id, seq, data->>'node_id' as node_id, data->>'task_id' as task_id, data->'result' as result,
    data->>'on_record' as on_record, data ? 'on_record' as is_elsewhere,
    muster.leaf_part(data)->>'of' as part_of, (muster.leaf_part(data)->>'place')::int as place
  from flow_events where run_id = any($1::uuid[]) and kind = 'task.completed' and data->>'node_id' is not null`

type Results = Record<string, unknown>

/** The last result of each leaf with an id. Null if the results are too large. */
type ResultsOf = (run: { id: string }) => Results | null

async function readResults(db: Db, runIds: readonly string[], mostBytes: number): Promise<ResultsOf> {
  if (runIds.length === 0) return () => ({})
  const { rows } = await db.query<{ run_id: string; node_id: string; result: unknown; is_large: boolean }>(
    `with told as (${TOLD_RESULTS}), last as (
       select distinct on (run_id, node_id) * from told order by run_id, node_id, seq desc
     ), whole as (
       select run_id, node_id, is_elsewhere, case when part_of is null then result else (
         select jsonb_agg(t.result order by t.place) from told t
         where (t.run_id, t.node_id, t.part_of) = (last.run_id, last.node_id, last.part_of)) end as result
       from last
     ), measured as (
       select *, sum(octet_length(result::text)) over (partition by run_id) > $2
         or bool_or(is_elsewhere) over (partition by run_id) as is_large from whole
     )
     select run_id, node_id, is_large, case when not is_large then result end as result from measured`,
    [runIds, 2 * mostBytes],
  )
  const byRun = new Map<string, Results | null>()
  for (const { run_id, node_id, result, is_large } of rows) {
    const known = byRun.get(run_id)
    if (is_large) byRun.set(run_id, null)
    else if (known) known[node_id] = result
    else byRun.set(run_id, { [node_id]: result })
  }
  return ({ id }) => {
    const results = byRun.get(id)
    return results === undefined ? {} : results
  }
}

/** Only a run under way is expected to end. */
const expectationsOf = (db: Db, rows: readonly FlowRunRow[]): ReturnType<typeof readExpectations> =>
  readExpectations(
    db,
    rows.filter((row) => row.status === 'running'),
  )

function toFlowRun(
  row: FlowRunRow,
  results: Results | null,
  expectation: ExpectedDuration | null,
  usualWorkers: number,
  mostBytes: number,
): FlowRun {
  const { id, flow_id, resumed_from, resumed_as, parent_run_id, pattern, status, input, error, progress, duration } =
    row
  const url = `/api/projects/${row.project_id}/flow-runs/${id}/output`
  const isTooMuch = (value: unknown): boolean => Buffer.byteLength(JSON.stringify(value ?? null)) > mostBytes
  const isOutputCut = row.is_large || isTooMuch(row.output)
  return {
    id,
    flow_id,
    resumed_from,
    resumed_as,
    parent_run_id,
    pattern,
    status,
    input,
    output: isOutputCut ? { truncated: true, url } : row.output,
    results: results === null || isTooMuch(results) ? { truncated: true, url: `${url}?part=results` } : results,
    error,
    progress,
    waiting: row.completed_at === null ? row.people_waits : 0,
    eta: etaOf(row, expectation)?.toISOString() ?? null,
    workers: row.workers ?? usualWorkers,
    timeout: row.timeout,
    cancel_requested_at: row.cancel_requested_at?.toISOString() ?? null,
    usage: toUsage(row),
    last_seq: row.last_seq,
    created_at: row.created_at.toISOString(),
    started_at: row.started_at?.toISOString() ?? null,
    completed_at: row.completed_at?.toISOString() ?? null,
    duration,
  }
}
