// Advances the evals of a project: ended runs are judged, and new runs are started in their place, in one transaction
// under a lock of the project. So each case of each variant is run once, and only a few runs are open at a time. The
// oldest eval comes first, and a case is run on all variants before the next case.
import { isUnavailable } from '../db/failures.ts'
import { rowsOf } from '../db/lists.ts'
import type { Db, Pool, PreparedSql } from '../db/pool.ts'
import { afterCommit, inTransaction } from '../db/transaction.ts'
import type { EvalStatus, Expectation } from '../kernel/eval.ts'
import type { Log } from '../kernel/log.ts'
import { startSystem } from '../supervisor/start.ts'
import type { StoredSystem } from './eval-row.ts'
import { type CaseOutcome, readOutcome } from './outcome.ts'

/** The number is small, so that other runs of the project, and other projects, hardly wait for the evals. */
export const MOST_UNDER_WAY = 5

export interface Advanced {
  started: number
  /** Open runs whose eval was stopped. */
  toCancel: string[]
  /** True if another process is advancing the evals of this project at the moment. */
  isBusy: boolean
}

/** Throws only if the database does not answer. An eval that cannot go on for another reason fails. */
export async function advanceEvals(pool: Pool, log: Log, projectId: string): Promise<Advanced> {
  for (;;) {
    try {
      return await inTransaction(pool, (tx) => advance(tx, log, projectId))
    } catch (error) {
      if (!(error instanceof EvalFault)) throw error
      log.error({ err: error.cause, eval_id: error.evalId, project_id: projectId }, 'an eval failed in our own code')
      await failEval(pool, error)
    }
  }
}

/** A failure of one eval that a retry would not mend. */
class EvalFault extends Error {
  readonly evalId: string

  constructor(evalId: string, cause: unknown) {
    super(cause instanceof Error ? cause.message : String(cause), { cause })
    this.evalId = evalId
  }
}

async function workFor<Result>(evalId: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    if (isUnavailable(error)) throw error
    throw new EvalFault(evalId, error)
  }
}

async function failEval(db: Db, { evalId, message }: EvalFault): Promise<void> {
  await db.query(
    `update evals set status = 'failed', error_message = $2, completed_at = muster.now()
     where id = $1 and status = 'running'`,
    [evalId, `Muster failed while working on this eval: ${message.slice(0, 1_000)}`],
  )
}

const LOCK: PreparedSql = {
  name: 'evals_lock',
  text: `select halted_at is not null as is_halted,
      pg_try_advisory_xact_lock(hashtextextended('evals ' || $1::text, 0)) as is_locked
    from projects where id = $1::uuid and deleted_at is null`,
}

async function advance(tx: Db, log: Log, projectId: string): Promise<Advanced> {
  const { rows } = await tx.query<{ is_halted: boolean; is_locked: boolean }>(LOCK, [projectId])
  const [project] = rows
  if (!project?.is_locked) return { started: 0, toCancel: [], isBusy: project !== undefined }
  const { rows: underWay } = await tx.query<UnderWay>(UNDER_WAY, [projectId])
  const ended = underWay.filter((result) => result.has_ended)
  const open = underWay.filter((result) => !result.has_ended)
  await settle(tx, log, projectId, ended)
  await tx.query(CLOSE, [projectId])
  const room = MOST_UNDER_WAY - open.length
  const started = project.is_halted || room <= 0 ? 0 : await start(tx, projectId, room)
  const toCancel = open.filter(({ eval_status: status }) => status !== 'running').map(({ run_id: runId }) => runId)
  return { started, toCancel, isBusy: false }
}

interface ResultKey {
  eval_id: string
  place: number
  variant: number
}

interface UnderWay extends ResultKey {
  run_id: string
  expect: Expectation
  eval_status: EvalStatus
  has_ended: boolean
  /** True if retention has removed the run. */
  is_gone: boolean
}

const UNDER_WAY: PreparedSql = {
  name: 'evals_under_way',
  text: `
    select r.eval_id, r.place, r.variant, r.run_id, c.expect, e.status as eval_status,
      run.id is null or run.completed_at is not null as has_ended, run.id is null as is_gone
    from evals e
    join eval_results r on r.eval_id = e.id and r.run_id is not null and r.ended_at is null
    join eval_cases c on c.eval_id = r.eval_id and c.place = r.place
    left join lateral (select id, completed_at from agent_runs where id = r.run_id limit 1) run on true
    where e.project_id = $1 and e.is_open order by r.eval_id, r.place, r.variant`,
}

const SETTLE: PreparedSql = {
  name: 'eval_results_settle',
  text: `
    update eval_results r set ended_at = muster.now(), passed = g.passed, status = g.status, route = g.route,
      output = g.output, reason = g.reason, latency = g.latency, tokens = g.tokens
    from ${rowsOf(['uuid', 'int', 'int', 'bool', 'text', 'jsonb', 'text', 'text', 'int', 'bigint'])}
      as g (eval_id, place, variant, passed, status, route, output, reason, latency, tokens)
    where r.eval_id = g.eval_id and r.place = g.place and r.variant = g.variant`,
}

const COUNT: PreparedSql = {
  name: 'evals_count',
  text: `
    with judged as (
      select eval_id, count(*)::int as count from unnest((select $1::uuid[])) as j (eval_id) group by eval_id
    )
    update evals e set done = done + j.count,
      status = case when e.status = 'running' and done + j.count = total then 'completed' else e.status end,
      completed_at = case when e.status = 'running' and done + j.count = total then muster.now() else completed_at end,
      is_open = done + j.count < total
    from judged j where e.id = j.eval_id returning e.id, e.status`,
}

/** A stopped eval is over when the last of its runs is. */
const CLOSE: PreparedSql = {
  name: 'evals_close',
  text: `
    update evals e set is_open = false where project_id = $1 and is_open and status <> 'running'
      and not exists (select from eval_results r where r.eval_id = e.id and r.run_id is not null and r.ended_at is null)`,
}

async function settle(tx: Db, log: Log, projectId: string, ended: readonly UnderWay[]): Promise<void> {
  if (ended.length === 0) return
  const outcomes: { result: UnderWay; outcome: CaseOutcome }[] = []
  for (const result of ended) outcomes.push({ result, outcome: await outcomeOf(tx, projectId, result) })
  const column = <Value>(pick: (each: (typeof outcomes)[number]) => Value): Value[] => outcomes.map(pick)
  await tx.query(SETTLE, [
    column(({ result }) => result.eval_id),
    column(({ result }) => result.place),
    column(({ result }) => result.variant),
    column(({ outcome }) => outcome.passed),
    column(({ outcome }) => outcome.status),
    column(({ outcome }) => JSON.stringify(outcome.route)),
    column(({ outcome }) => outcome.output),
    column(({ outcome }) => outcome.reason),
    column(({ outcome }) => outcome.latency),
    column(({ outcome }) => outcome.tokens),
  ])
  const judged = outcomes.filter(({ outcome }) => outcome.passed !== null).map(({ result }) => result.eval_id)
  const { rows } = await tx.query<{ id: string; status: EvalStatus }>(COUNT, [judged])
  for (const { id } of rows.filter(({ status }) => status === 'completed')) {
    afterCommit(tx, () => log.info({ eval_id: id, project_id: projectId }, 'an eval is completed'))
  }
}

const UNJUDGED: CaseOutcome = {
  passed: null,
  status: null,
  route: [],
  output: null,
  latency: null,
  tokens: null,
  reason: 'The eval was stopped before this case had an outcome.',
}
const GONE: CaseOutcome = {
  passed: false,
  status: 'FAILED',
  route: [],
  output: null,
  latency: null,
  tokens: null,
  reason: 'The run was removed before its outcome was read.',
}

async function outcomeOf(tx: Db, projectId: string, result: UnderWay): Promise<CaseOutcome> {
  if (result.eval_status !== 'running') return UNJUDGED
  if (result.is_gone) return GONE
  return workFor(result.eval_id, () => readOutcome(tx, { projectId, runId: result.run_id, expect: result.expect }))
}

interface Waiting extends ResultKey {
  task: string
  metadata: Record<string, unknown>
  system: StoredSystem | null
}

const WAITING: PreparedSql = {
  name: 'evals_waiting',
  text: `
    select r.eval_id, r.place, r.variant, c.task, c.metadata, r.systems->r.variant as system
    from (
      select e.id as eval_id, e.systems, w.place, w.variant::int as variant from (
        select id, systems from evals where project_id = $1 and is_open and status = 'running' order by created_at, id) e
      cross join lateral (
        select place, variant from eval_results where eval_id = e.id and run_id is null order by place, variant limit $2) w
      limit $2) r
    join eval_cases c on c.eval_id = r.eval_id and c.place = r.place`,
}

const STARTED: PreparedSql = {
  name: 'eval_results_started',
  text: `
    update eval_results r set run_id = g.run_id
    from ${rowsOf(['uuid', 'int', 'int', 'uuid'])} as g (eval_id, place, variant, run_id)
    where r.eval_id = g.eval_id and r.place = g.place and r.variant = g.variant and r.run_id is null`,
}

async function start(tx: Db, projectId: string, room: number): Promise<number> {
  const { rows: waiting } = await tx.query<Waiting>(WAITING, [projectId, room])
  if (waiting.length === 0) return 0
  const runIds: string[] = []
  for (const each of waiting) runIds.push(await workFor(each.eval_id, () => startOne(tx, projectId, each)))
  await tx.query(STARTED, [
    waiting.map((each) => each.eval_id),
    waiting.map((each) => each.place),
    waiting.map((each) => each.variant),
    runIds,
  ])
  return waiting.length
}

async function startOne(
  tx: Db,
  projectId: string,
  { eval_id: evalId, variant, task, metadata, system }: Waiting,
): Promise<string> {
  if (!system) throw new Error(`the variant at place ${variant} has no configuration`)
  return startSystem(tx, projectId, system, { task, metadata, contextId: null, trigger: { eval_id: evalId } })
}

const OPEN = 'e.project_id = f.id and e.is_open'
const RUNNING = 'eval_results r on r.eval_id = e.id and r.run_id is not null and r.ended_at is null'

/** An eval that waits for its runs, or for the release of the off switch, counts as no work. */
const FIND: PreparedSql = {
  name: 'evals_find',
  text: `
    with recursive found (id) as (
      (select project_id from evals where is_open order by project_id limit 1)
      union all
      select (select e.project_id from evals e where e.is_open and e.project_id > f.id order by e.project_id limit 1)
      from found f where f.id is not null
    )
    select f.id, exists (select from evals e where ${OPEN} and e.status <> 'running')
      or exists (select from evals e join ${RUNNING} where ${OPEN}
        and not exists (select from agent_runs a where a.id = r.run_id and a.completed_at is null))
      or (not p.is_halted and (select count(*) from evals e join ${RUNNING} where ${OPEN}) < ${MOST_UNDER_WAY}
        and exists (select from evals e join eval_results w on w.eval_id = e.id and w.run_id is null
          where ${OPEN} and e.status = 'running')) as has_work
    from found f cross join lateral (
      select halted_at is not null as is_halted from projects where id = f.id and deleted_at is null limit 1) p`,
}

/** The projects with open evals; `hasWork` is true if an eval of the project can be advanced now. */
export async function findProjects(db: Db): Promise<{ id: string; hasWork: boolean }[]> {
  const { rows } = await db.query<{ id: string; has_work: boolean }>(FIND)
  return rows.map(({ id, has_work: hasWork }) => ({ id, hasWork }))
}
