// The run of an agent that is a flow. It starts a flow run with its input, holds no slot while the flow run is under
// way, and ends as the flow run ends, whose last statement wakes it; a run that ends takes its flow run down (migration
// 0044). A transaction that changes a run and its flow run locks the run first, until both have ended: later usage climbs
// from the flow run to the run (migration 0052).
import type { Db, Pool } from '../../db/pool.ts'
import { MusterError } from '../../kernel/errors.ts'
import { fault } from '../../kernel/fault.ts'
import type { FlowRunStatus } from '../../kernel/flow-run.ts'
import { guardBudget } from '../../kernel/guards.ts'
import { idFrom } from '../../kernel/id.ts'
import { agentActor } from '../../kernel/principal.ts'
import type { RunEvent } from '../../kernel/run-event.ts'
import { cancelled, type End, leave, outOfTokens, runCompleted, runFailed, waiting } from '../../runs/end.ts'
import { handBack, heedSwitches } from '../../runs/heed-switches.ts'
import { append, appendWhere, type OwnedRun } from '../../runs/owned-run.ts'
import { isHalted } from '../../runs/park.ts'
import { findFlow } from '../definition/find-flow.ts'
import { requireFlow } from '../definition/flows.ts'
import type { Checking } from '../definition/known-names.ts'
import { flowOfRunToResume } from './resume-flow.ts'
import { insertFlowRuns, type NewFlowRun, prepareFlow } from './start.ts'
import { beginTokenWait, endTokenWait } from './token-waits.ts'

export interface RunFlowParts extends Checking {
  pool: Pool
  /** Flow runs became ready in the database. */
  onFlowReady: () => void
}

export function createRunFlow(parts: RunFlowParts): (owned: OwnedRun) => Promise<void> {
  return async (owned) => {
    const flowRunId = flowRunIdOf(owned)
    const hasStarted = owned.state.flowRunId === flowRunId
    for (;;) {
      // An output that is there already is not thrown away by a stop.
      if (hasStarted && !isInterrupted(owned) && (await endAsFlowRun(parts.pool, owned, flowRunId))) return
      if ((await heedSwitches(owned)) === 'left') return
      const refusal = (await budgetEnd(parts.pool, owned, hasStarted)) ?? (hasStarted ? null : depthEnd(owned))
      if (refusal) {
        if (!hasStarted) return void (await leave(owned, refusal))
        if (await waitForTokens(owned, refusal)) return
        continue
      }
      if (hasStarted) await wakeLeavesWaitingForTokens(parts, owned, flowRunId)
      if (await (hasStarted ? parkAgain(owned) : begin(parts, owned, flowRunId))) return
      await owned.deps.refreshHalted()
    }
  }
}

/** Each run has a flow run of its own, also one that continues another. */
const flowRunIdOf = ({ run }: OwnedRun): string => idFrom(`flow of ${run.id}`)

const failedFlow = (message: string): End => runFailed('FLOW_FAILED', message, null)

/** Starts the flow run and parks the run, in one transaction. False: the project was halted meanwhile. */
async function begin(parts: RunFlowParts, owned: OwnedRun, flowRunId: string): Promise<boolean> {
  const { patterns } = parts
  const prepared = await prepare(parts, owned)
  if ('event' in prepared) return leave(owned, prepared).then(() => true)
  const { run, agent } = owned
  let isDeleted = false
  let isEarlierOpen = false
  const hasBegun = await appendWhere(
    owned,
    async (tx) => {
      isDeleted = await isAgentDeleted(tx, agent.id)
      if (isDeleted || (await isHalted(tx, run.project_id))) return false
      const started = await takingOver(tx, owned, prepared)
      isEarlierOpen = started === 'open'
      if (started === 'open') return false
      await insertFlowRuns(tx, [{ id: flowRunId, run: started, actor: agentActor(agent.id) }], null, patterns)
      await tx.query(`update agent_runs set started_flow_run_id = $2, open_children = 1 where id = $1 and fence = $3`, [
        run.id,
        flowRunId,
        run.fence,
      ])
      return true
    },
    [
      { kind: 'flow.started', data: { flow_run_id: flowRunId } },
      { kind: 'run.parked', data: { waits_for: 'flow' } },
    ],
    { set: { waits_for: 'children', release: true, seen_signals: run.signals } },
  )
  if (isDeleted) return handBack(owned).then(() => true)
  if (isEarlierOpen) return waitForEarlier(owned).then(() => true)
  if (!hasBegun) return false
  await fault('park.after_commit')
  parts.onFlowReady()
  return true
}

/**
 * A run that continues another resumes the flow run of that one. A new input is for a flow run of its own. open: the
 * earlier flow run has not ended, because its leaves may end after the cancel of its run.
 */
async function takingOver(tx: Db, { run, state }: OwnedRun, prepared: NewFlowRun): Promise<NewFlowRun | 'open'> {
  if (state.flowRunId === null || run.input !== null) return prepared
  const resumed = await flowOfRunToResume(tx, run.project_id, state.flowRunId)
  return typeof resumed === 'object' ? { ...prepared, ...resumed } : resumed === 'gone' ? prepared : resumed
}

const EARLIER_WAIT_MS = 500

/** The run holds no slot until its next look at the flow run that it is to resume. It has no sub-run that would wake it. */
async function waitForEarlier(owned: OwnedRun): Promise<void> {
  await append(owned, [{ kind: 'run.parked', data: { waits_for: 'flow' } }], {
    set: { waits_for: 'backoff', release: true, seen_signals: owned.run.signals, ready_in_ms: EARLIER_WAIT_MS },
  })
  owned.deps.onReady(EARLIER_WAIT_MS)
}

/** An agent that is deleted at this moment finds the parked run, or is found here. */
async function isAgentDeleted(tx: Db, agentId: string): Promise<boolean> {
  const { rowCount } = await tx.query('select from agents where id = $1 and deleted_at is null for share', [agentId])
  return rowCount === 0
}

async function prepare({ pool, ...checking }: RunFlowParts, owned: OwnedRun): Promise<NewFlowRun | End> {
  const { run, agent, settings } = owned
  const name = agent.flow ?? ''
  const flow = await findFlow(pool, run.project_id, name)
  if (!flow) return failedFlow(`There is no flow and no template called "${name}" (any more).`)
  if (!flow.enabled) return failedFlow(`The flow "${name}" is disabled. Enable it first.`)
  try {
    const root = await requireFlow(pool, run.project_id, flow.root, checking)
    const { id: flowId } = flow
    const timeoutMs = run.timeout ?? settings.flow_timeout
    const input = await inputOf(pool, owned)
    const started = {
      projectId: run.project_id,
      flowId,
      root,
      input,
      timeoutMs,
      workers: null,
      keyScope: `${run.key_scope ?? run.id}:flow`,
      parent: await parentOf(pool, owned),
    }
    return await prepareFlow(pool, started, checking.patterns)
  } catch (error) {
    if (error instanceof MusterError && error.status < 500) return failedFlow(`The flow "${name}": ${error.message}`)
    throw error
  }
}

/** The bounds of the run hold for the runs of the leaves. */
async function parentOf(db: Db, { run, rights }: OwnedRun): Promise<NonNullable<NewFlowRun['parent']>> {
  const payers = run.agent_id === null ? run.payers : [...new Set([...run.payers, run.agent_id])]
  return {
    runId: run.id,
    within: {
      depth: run.depth + 1,
      chain_depth: run.chain_depth,
      rights: { ...rights },
      payers,
      ...(run.trigger.eval_id === undefined ? {} : { eval_id: run.trigger.eval_id }),
      ...(isByPerson(run.trigger) ? { resumed_by: 'person' as const } : {}),
      ...(await treeOf(db, run.id)),
    },
  }
}

const isByPerson = ({ type, resumed_by: by }: OwnedRun['run']['trigger']): boolean =>
  type === 'resume' || by === 'person'

/** The uppermost flow run above the run, if there is one. */
async function treeOf(db: Db, runId: string): Promise<{ tree?: string }> {
  const { rows } = await db.query<{ tree: string }>(
    `select coalesce(f.within->>'tree', f.id::text) as tree from muster.leaf_of_run($1) l
     join flow_runs f on f.id = l.flow_run_id`,
    [runId],
  )
  return rows[0] ?? {}
}

/** A run that continues another, and was given nothing new, has the input of that one. */
async function inputOf(db: Db, { run }: OwnedRun): Promise<unknown> {
  let { input, base_run_id: before } = run
  while (input === null && before !== null) {
    const { rows } = await db.query<{ input: unknown; base_run_id: string | null }>(
      'select input, base_run_id from agent_runs where id = $1',
      [before],
    )
    input = rows[0]?.input ?? null
    before = rows[0]?.base_run_id ?? null
  }
  return input
}

/**
 * An agent without tokens starts no flow. The run of a task waits for tokens, also while its flow run is under way: the
 * leaves wait as well, and go on with the run. The calls of any other flow run are refused.
 */
async function budgetEnd(db: Db, { agent, run }: OwnedRun, hasStarted: boolean): Promise<End | null> {
  if (agent.token_allocation === null || (hasStarted && run.task_id === null)) return null
  const { rows } = await db.query<{ used: number }>('select used from agent_tokens where agent_id = $1', [agent.id])
  const used = rows[0]?.used ?? 0
  const facts = { allocation: agent.token_allocation, used, reserved: 0, bound: 1, isFirstCall: true }
  if (guardBudget(facts).verdict === 'go') return null
  if (run.task_id !== null) return waiting('budget', [], run.signals)
  return outOfTokens(null)
}

/** Pauses the run until its agent has tokens. False: the flow run has ended meanwhile. */
async function waitForTokens(owned: OwnedRun, { event, set }: End): Promise<boolean> {
  const hasPaused = await appendWhere(owned, (tx) => beginTokenWait(tx, owned.run.id), [event], { set })
  if (hasPaused) await fault('final.after_commit')
  return hasPaused
}

/**
 * The agent of the task has tokens: the leaves that wait for them go on. The flow runs have as much more time as they
 * waited.
 */
async function wakeLeavesWaitingForTokens(
  { pool, onFlowReady }: RunFlowParts,
  { run, deps }: OwnedRun,
  flowRunId: string,
): Promise<void> {
  if (run.task_id === null) return
  const { rowCount } = await pool.query(
    `with below as materialized (select * from muster.runs_below_flow($1))
     update agent_runs set ready_at = muster.now() where id in (
       select id from agent_runs where id in (select id from below) and waits_for = 'allocation' and owner is null
         and ready_at is null and completed_at is null order by id for no key update skip locked)`,
    [flowRunId],
  )
  if (rowCount) deps.onReady()
  if (await endTokenWait(pool, run.id, flowRunId)) onFlowReady()
}

function depthEnd({ run, settings, agent }: OwnedRun): End | null {
  const { spawn_depth_limit: most } = settings
  if (run.payers.includes(agent.id)) return failedFlow(`The agent ${agent.name} is a part of its own flow.`)
  if (run.depth + 1 <= most) return null
  return failedFlow(`Agents may be nested ${most} deep at most, and this run is at that depth.`)
}

interface FlowOutcome {
  status: FlowRunStatus
  output: unknown
  error: string | null
  duration: number | null
}

const isInterrupted = ({ control }: OwnedRun): boolean => control.interruption() !== null

/** Ends the run as its flow run has ended. False: the flow run is under way. */
async function endAsFlowRun(pool: Pool, owned: OwnedRun, flowRunId: string): Promise<boolean> {
  const { rows } = await pool.query<FlowOutcome>(
    'select status, output, error, duration from flow_runs where id = $1 and completed_at is not null',
    [flowRunId],
  )
  const ended = rows[0]
  if (!ended) return false
  const data = { flow_run_id: flowRunId, status: ended.status, duration: ended.duration ?? 0 }
  await leave(owned, runEndOf(ended), [{ kind: 'flow.ended', data }])
  return true
}

/** False: the project was halted meanwhile. */
async function parkAgain(owned: OwnedRun): Promise<boolean> {
  const { run } = owned
  const change = { set: { waits_for: 'children', release: true, seen_signals: run.signals } } as const
  const parked: RunEvent = { kind: 'run.parked', data: { waits_for: 'flow' } }
  return appendWhere(owned, async (tx) => !(await isHalted(tx, run.project_id)), [parked], change)
}

function runEndOf({ status, output, error }: FlowOutcome): End {
  switch (status) {
    case 'completed':
    case 'partial':
      return runCompleted(typeof output === 'string' ? output : JSON.stringify(output ?? null))
    case 'cancelled':
      return cancelled(null)
    default:
      return failedFlow(error ?? `The flow run is ${status}.`)
  }
}
