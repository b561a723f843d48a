import { NOTE_COLUMNS, NOTE_TYPES, noteValues } from '../audit/record.ts'
import type { Db, PreparedSql } from '../db/pool.ts'
import type { FlowNode } from '../kernel/flow.ts'
import { newId } from '../kernel/id.ts'
import type { Actor } from '../kernel/principal.ts'
import { CLAIMED_COLUMNS, type ClaimedFlow, FIRST_CHECK } from './claim-flows.ts'
import { expectedDuration } from './expected-duration.ts'
import { ownFunctions } from './own-functions.ts'
import { plannedLeaves } from './planned-leaves.ts'
import { withLearntTopologies } from './topology-results.ts'

export interface NewFlowRun {
  projectId: string
  flowId: string | null
  /** Has been validated. */
  root: FlowNode
  input: unknown
  timeoutMs: number
  workers: number | null
}

export interface FlowStart {
  id: string
  run: NewFlowRun
  actor: Actor
}

/** From this commit on the flow run is never lost. Answers its id. */
export async function startFlow(db: Db, run: NewFlowRun, actor: Actor): Promise<string> {
  const id = newId()
  await insertFlowRuns(db, [{ id, run: await prepareFlow(db, run), actor }], null)
  return id
}

/** The run as it is to be stored: with the topologies that earlier runs have taught. */
export async function prepareFlow(db: Db, run: NewFlowRun): Promise<NewFlowRun> {
  return { ...run, root: await withLearntTopologies(db, run.projectId, run.root) }
}

const START: PreparedSql = {
  name: 'flow_start',
  text: `
    with given as (
      select * from rows from (unnest($1::uuid[]), unnest($2::uuid[]), unnest($3::uuid[]),
        jsonb_array_elements($4::jsonb), jsonb_array_elements($5::jsonb), unnest($6::int[]), unnest($7::int[]),
        jsonb_array_elements($8::jsonb), unnest($9::int[]), jsonb_array_elements($10::jsonb))
        as g (id, project_id, flow_id, root, input, timeout, workers, progress, expected, needs)
    ), owning as (select id from workers where id = $11), made as (
      insert into flow_runs as r (id, project_id, flow_id, root, input, timeout, workers, progress, expected, needs,
        owner, fence, ready_at, status, started_at, check_at)
      select g.id, g.project_id, g.flow_id, g.root, g.input, g.timeout, g.workers, g.progress, g.expected,
        array(select jsonb_array_elements_text(g.needs)),
        o.id, case when o.id is null then 0 else 1 end, case when o.id is null then muster.now() end,
        case when o.id is null then 'queued' else 'running' end, case when o.id is not null then muster.now() end,
        case when o.id is not null then ${FIRST_CHECK} end
      from given g left join owning o on true
      returning r.owner, ${CLAIMED_COLUMNS}
    ), noted as (
      insert into audit_log (${NOTE_COLUMNS})
      select * from unnest(${NOTE_TYPES.map((type, index) => `$${index + 12}::${type}[]`).join(', ')})
    )
    select * from made where owner is not null`,
}

/** Inserts all with one statement. Answers the runs that the owner has from the start; the others may be claimed. */
export async function insertFlowRuns(
  db: Db,
  starts: readonly FlowStart[],
  owner: string | null,
): Promise<ClaimedFlow[]> {
  const runs = starts.map(({ run }) => run)
  const notes = starts.map(({ id, run, actor }) =>
    noteValues({
      ...{ action: 'flow.start', actor, projectId: run.projectId, targetType: 'flow_run', targetId: id },
      details: run.flowId === null ? {} : { flow_id: run.flowId },
    }),
  )
  const { rows } = await db.query<ClaimedFlow>(START, [
    starts.map(({ id }) => id),
    runs.map((run) => run.projectId),
    runs.map((run) => run.flowId),
    JSON.stringify(runs.map((run) => run.root)),
    JSON.stringify(runs.map((run) => run.input ?? null)),
    runs.map((run) => run.timeoutMs),
    runs.map((run) => run.workers),
    JSON.stringify(runs.map(progressBefore)),
    runs.map(expectedDuration),
    JSON.stringify(runs.map((run) => ownFunctions(run.root))),
    owner,
    ...NOTE_TYPES.map((_, column) => notes.map((note) => note[column])),
  ])
  return rows
}

function progressBefore({ root }: NewFlowRun) {
  const total = plannedLeaves(root)
  return { total, pending: total, running: 0, completed: 0, failed: 0, skipped: 0 }
}
