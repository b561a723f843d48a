import { type AuditNote, NOTE_COLUMNS, NOTE_TYPES, noteLists } from '../../audit/record.ts'
import type { Db, PreparedSql } from '../../db/pool.ts'
import { plainArray } from '../../journal/plain-array.ts'
import type { FlowNode } from '../../kernel/flow.ts'
import { newId } from '../../kernel/id.ts'
import type { Actor } from '../../kernel/principal.ts'
import { expectedDuration } from '../definition/expected-duration.ts'
import { ownFunctions } from '../definition/own-functions.ts'
import { plannedLeaves } from '../definition/planned-leaves.ts'
import { withLearntTopologies } from '../history/topology-results.ts'
import type { Patterns } from '../machine/pattern.ts'
import { CLAIMED_COLUMNS, type ClaimedFlow, FIRST_CHECK } from './claim.ts'
import type { LeafBounds } from './leaf-bounds.ts'

export interface NewFlowRun {
  projectId: string
  flowId: string | null
  /** The tree, which has been validated. */
  root: FlowNode
  input: unknown
  timeoutMs: number
  workers: number | null
  /** The flow run that this one resumes. */
  resumedFrom?: string | null
  /** The scope of the keys of its leaves; without one it is the flow run itself. */
  keyScope?: string | null
  /** The run that waits for this one. */
  parent?: { runId: string; within: LeafBounds }
}

export interface FlowStart {
  id: string
  run: NewFlowRun
  actor: Actor
}

/** Stores the flow run. From this commit on it is never lost. Returns its id. */
export async function startFlow(db: Db, run: NewFlowRun, actor: Actor, patterns: Patterns): Promise<string> {
  const id = newId()
  await insertFlowRuns(db, [{ id, run: await prepareFlow(db, run, patterns), actor }], null, patterns)
  return id
}

/** The run as it is to be stored, with the topologies that were learned from earlier runs. */
export async function prepareFlow(db: Db, run: NewFlowRun, patterns: Patterns): Promise<NewFlowRun> {
  // A flow run that resumes another has the tree of that one, so that its leaves have the same ids.
  if (run.resumedFrom) return run
  return { ...run, root: await withLearntTopologies(db, run.projectId, run.root, patterns) }
}

const START: PreparedSql = {
  name: 'flow_start',
  text: `
    with given as (
      select * from rows from (unnest($1::uuid[]), unnest($2::uuid[]), unnest($3::uuid[]),
        jsonb_array_elements($4::jsonb), jsonb_array_elements($5::jsonb), unnest($6::int[]), unnest($7::int[]),
        jsonb_array_elements($8::jsonb), unnest($9::int[]), jsonb_array_elements($10::jsonb),
        unnest($11::uuid[]), jsonb_array_elements($12::jsonb), unnest($13::uuid[]), unnest($14::text[]))
        as g (id, project_id, flow_id, root, input, timeout, workers, progress, expected, needs, parent_run_id, within,
          resumed_from, key_scope)
    ), owning as (select id from workers where id = $15), made as (
      insert into flow_runs as r (id, project_id, flow_id, root, input, timeout, workers, progress, expected, needs,
        parent_run_id, within, resumed_from, key_scope, owner, fence, ready_at, status, started_at, check_at)
      select g.id, g.project_id, (select f.id from flows f where f.id = g.flow_id for key share), g.root, g.input, g.timeout, g.workers, g.progress, g.expected,
        array(select jsonb_array_elements_text(g.needs)), g.parent_run_id, nullif(g.within, 'null'),
        g.resumed_from, g.key_scope,
        o.id, case when o.id is null then 0 else 1 end, case when o.id is null then muster.now() end,
        case when o.id is null then 'queued' else 'running' end, case when o.id is not null then muster.now() end,
        case when o.id is not null then ${FIRST_CHECK} end
      from given g left join owning o on true
      returning r.owner, ${CLAIMED_COLUMNS}
    ), noted as (
      insert into audit_log (${NOTE_COLUMNS})
      select * from unnest(${NOTE_TYPES.map((type, index) => `$${index + 16}::${type}[]`).join(', ')})
    )
    select * from made where owner is not null`,
}

/** Inserts all runs with one statement. Returns the runs that the owner has from the start. */
export async function insertFlowRuns(
  db: Db,
  starts: readonly FlowStart[],
  owner: string | null,
  patterns: Patterns,
): Promise<ClaimedFlow[]> {
  const runs = starts.map(({ run }) => run)
  const notes = starts.map(
    ({ id, run, actor }): AuditNote => ({
      action: 'flow.start',
      actor,
      projectId: run.projectId,
      targetType: 'flow_run',
      targetId: id,
      details: run.flowId === null ? {} : { flow_id: run.flowId },
    }),
  )
  const { rows } = await db.query<ClaimedFlow>(START, [
    plainArray(starts, ({ id }) => id),
    runs.map((run) => run.projectId),
    runs.map((run) => run.flowId),
    JSON.stringify(runs.map((run) => run.root)),
    JSON.stringify(runs.map((run) => run.input ?? null)),
    plainArray(runs, (run) => run.timeoutMs),
    plainArray(runs, (run) => run.workers),
    JSON.stringify(runs.map((run) => progressBefore(run, patterns))),
    plainArray(runs, (run) => expectedDuration(run, patterns)),
    JSON.stringify(runs.map((run) => ownFunctions(run.root, patterns))),
    runs.map((run) => run.parent?.runId ?? null),
    JSON.stringify(runs.map((run) => run.parent?.within ?? null)),
    runs.map((run) => run.resumedFrom ?? null),
    runs.map((run) => run.keyScope ?? null),
    owner,
    ...noteLists(notes),
  ])
  return rows
}

function progressBefore({ root }: NewFlowRun, patterns: Patterns) {
  const total = plannedLeaves(root, patterns)
  return { total, pending: total, running: 0, completed: 0, failed: 0, skipped: 0 }
}
