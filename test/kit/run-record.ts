// All rows of a project's runs, in the form that the checks of the promise need.
import { z } from 'zod'
import { type Plan, planShape } from './fake-model.ts'
import { withClient } from './test-server.ts'

export interface RecordedEvent {
  seq: number
  id: string
  kind: string
  data: Record<string, unknown>
}

export interface RunRecord {
  id: string
  status: string
  pause_reason: string | null
  error_code: string | null
  summary: string | null
  input: unknown
  step_count: number
  parent_run_id: string | null
  resumed_from: string | null
  input_tokens: number
  output_tokens: number
  usage_estimated: boolean
  completed_at: Date | null
  started_at: Date | null
  duration: number | null
  last_seq: number
  fence: number
  owner: string | null
  ready_at: Date | null
  open_children: number
  reserved: number
  /** The number of times an owner's death was charged to the run, over its whole life. */
  crashes: number
  cancel_requested_at: Date | null
  events: RecordedEvent[]
  /** The events of the run itself; the journal's other events belong to its sub-runs. */
  own: RecordedEvent[]
  plan: z.output<typeof planShape>
}

export async function readRuns(databaseUrl: string, projectId: string): Promise<Map<string, RunRecord>> {
  return withClient(databaseUrl, async (db) => {
    const { rows } = await db.query<RunRecord>(
      `select id, status, pause_reason, error_code, summary, input, step_count, parent_run_id, resumed_from,
         input_tokens::int, output_tokens::int, usage_estimated, started_at, completed_at, duration, last_seq::int,
         fence::int, owner, ready_at, open_children, reserved::int, cancel_requested_at
       from agent_runs where project_id = $1`,
      [projectId],
    )
    const runs = new Map(rows.map((row) => [row.id, { ...row, events: [] as RecordedEvent[] }]))
    const { rows: events } = await db.query<RecordedEvent & { run_id: string }>(
      // An event of a sub-run is also in the sub-run's own journal.
      `select run_id, seq::int, e.id, kind, case when origin_seq is null then data else data || (
         select o.data from run_events o where o.run_id = (e.data->>'run_id')::uuid and o.seq = e.origin_seq) end as data
       from run_events e join agent_runs r on r.id = e.run_id
       where r.project_id = $1 order by run_id, seq`,
      [projectId],
    )
    for (const { run_id, ...event } of events) runs.get(run_id)?.events.push(event)
    for (const run of runs.values()) {
      run.own = run.events.filter(({ data }) => data.run_id === undefined)
      run.crashes = run.own.filter(({ kind, data }) => kind === 'run.recovered' && data.charged === true).length
      run.plan = planShape.parse(originOf(runs, run).input)
    }
    return runs
  })
}

/** The first run in a chain of resumed runs, which has the plan. */
function originOf(runs: ReadonlyMap<string, RunRecord>, run: RunRecord): RunRecord {
  const before = run.resumed_from === null ? undefined : runs.get(run.resumed_from)
  return before ? originOf(runs, before) : run
}

export interface PlannedEffect {
  label: string
  tool: string
  step: number
}

const ledgerArguments = z.looseObject({ label: z.string() })

/** The calls to the ledger that the plan asks for. */
export function plannedEffects(plan: Plan): PlannedEffect[] {
  return plan.steps.flatMap(({ calls = [] }, index) =>
    calls.flatMap(({ name, args }) => {
      const parsed = ledgerArguments.safeParse(args)
      return parsed.success ? [{ label: parsed.data.label, tool: name, step: index + 1 }] : []
    }),
  )
}

export const eventsOf = (run: RunRecord, kind: string): RecordedEvent[] =>
  run.own.filter((event) => event.kind === kind)
