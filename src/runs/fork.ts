import { getAgent } from '../agents/agents.ts'
import type { Db } from '../db/pool.ts'
import { callsOfRun, type FoundCall } from '../journal/finished-calls.ts'
import { insertRun } from '../journal/insert-run.ts'
import { conflict, invalidRequest, runNotFound } from '../kernel/errors.ts'
import { newId } from '../kernel/id.ts'
import type { ForkedRun, ForkInput, Run } from '../kernel/run.ts'
import { loadState } from './load-state.ts'
import { isHeld } from './pending-call.ts'
import { getRun } from './read-runs.ts'
import { requireAgent } from './resume.ts'
import { requireEnabled } from './start.ts'

interface Source {
  id: string
  agent_id: string | null
  step_count: number
  max_steps: number | null
  timeout: number | null
  input: unknown
  base_run_id: string | null
  base_seq: number | null
  forked_from: string | null
  rights: Record<string, unknown>
  payers: string[]
  chain_depth: number
}

/** A new run that starts from that point of the journal; the original is not touched. */
export async function forkRun(db: Db, projectId: string, runId: string, fork: ForkInput): Promise<Run> {
  const source = await readSource(db, projectId, runId)
  if (!source) throw runNotFound()
  if (fork.after_step > source.step_count) {
    throw invalidRequest(`after_step is ${fork.after_step}, but the run has ${source.step_count} steps.`)
  }
  const ownAgent = requireAgent(source)
  const agent = await getAgent(db, projectId, fork.agent_id ?? ownAgent)
  requireEnabled(agent)
  if (agent.flow_type === 'flow' && fork.after_step > 0) {
    throw invalidRequest(`The agent ${agent.name} is a flow and cannot continue steps: after_step must be 0.`)
  }
  const base = await findPoint(db, projectId, source, fork.after_step)
  const id = newId()
  await insertRun(db, {
    id,
    projectId,
    agentId: agent.id,
    trigger: { type: 'fork', forked_from: runId, after_step: fork.after_step },
    input: fork.input ?? null,
    maxSteps: fork.agent_id ? agent.max_steps : source.max_steps,
    timeoutMs: fork.agent_id ? agent.default_timeout : source.timeout,
    forkedFrom: runId,
    rights: source.rights,
    payers: source.payers,
    chainDepth: source.chain_depth,
    base,
  })
  return getRun(db, projectId, id)
}

/** The calls with an effect after that step; of those without a result nobody knows the outcome. */
export async function mayRepeat(
  db: Db,
  projectId: string,
  runId: string,
  afterStep: number,
): Promise<ForkedRun['may_repeat']> {
  const calls = await callsAfterStep(db, { projectId, runId, afterStep })
  return calls.map(({ tool, args, at, is_finished: isFinished }) => ({
    ...{ tool, args, at: at.toISOString() },
    ...(isFinished ? {} : { outcome: 'unknown' as const }),
  }))
}

/** The calls with an effect that a fork after that step does not know, and may make once more under keys of its own. */
export async function callsAfterStep(
  db: Db,
  { projectId, runId, afterStep }: { projectId: string; runId: string; afterStep: number },
): Promise<FoundCall[]> {
  const source = await readSource(db, projectId, runId)
  if (!source || afterStep > source.step_count) return []
  const point = await findPoint(db, projectId, source, afterStep)
  const from = await timeOf(db, point.runId, point.seq)
  const calls = await callsOfHistory(db, projectId, source)
  return calls.filter(({ at }) => at > from)
}

/** The calls of the run's history. A fork's history begins with the calls of its original before that point. */
async function callsOfHistory(db: Db, projectId: string, source: Source): Promise<FoundCall[]> {
  const own = await callsOfRun(db, source.id)
  let first = source
  while (first.base_run_id !== null) {
    const base = await readSource(db, projectId, first.base_run_id)
    if (!base) return own
    if (first.forked_from === null) {
      first = base
      continue
    }
    const until = await timeOf(db, first.base_run_id, first.base_seq)
    const before = await callsOfHistory(db, projectId, base)
    return [...before.filter(({ at }) => at <= until), ...own]
  }
  return own
}

async function timeOf(db: Db, runId: string, seq: number | null): Promise<Date> {
  const { rows } = await db.query<{ at: Date }>('select at from run_events where run_id = $1 and seq = $2', [
    runId,
    seq,
  ])
  return rows[0]?.at ?? new Date(0)
}

/** The lock keeps the run from being removed before the fork exists. */
async function readSource(db: Db, projectId: string, runId: string): Promise<Source | null> {
  const { rows } = await db.query<Source>(
    `select id, agent_id, step_count, max_steps, timeout, input, base_run_id, base_seq, forked_from, rights, payers, chain_depth
     from agent_runs where id = $1 and project_id = $2 for key share`,
    [runId, projectId],
  )
  return rows[0] ?? null
}

/** The last event of that step, including the results of its tools, in the journal of the chain that holds it. */
async function findPoint(
  db: Db,
  projectId: string,
  source: Source,
  afterStep: number,
): Promise<{ runId: string; seq: number; steps: number }> {
  const { rows } = await db.query<{ last: number | null; first: number | null }>(
    `select max(seq) filter (where kind <> 'run.started' and (data->>'step')::int = $2) as last,
       min(seq) filter (where kind = 'run.started') as first
     from run_events where run_id = $1 and not data ? 'run_id'
       and kind in ('run.started', 'step.completed', 'tool.completed', 'tool.started')`,
    [source.id, afterStep],
  )
  const { last = null, first = null } = rows[0] ?? {}
  if (last === null && source.base_run_id !== null) {
    const base = await readSource(db, projectId, source.base_run_id)
    if (base) return findPoint(db, projectId, base, afterStep)
  }
  const seq = last ?? first
  if (seq === null) throw invalidRequest('The run has not started yet, so there is nothing to fork.')
  await requireSettled(db, source, seq, afterStep)
  return { runId: source.id, seq, steps: afterStep }
}

/** A fork repeats calls without a result, unless one must not be repeated without a person's word. */
async function requireSettled(db: Db, source: Source, seq: number, afterStep: number): Promise<void> {
  const { pending } = await loadState(db, { ...source, up_to: seq })
  const unsafe = [...pending.values()].find((call) => call.effect === 'unsafe' && !isHeld(call))
  if (!unsafe) return
  throw conflict(
    `The call of ${unsafe.name} in step ${afterStep} has no result, and a fork would make it again. ` +
      'Fork after an earlier step, or settle the call first.',
    { call_id: unsafe.id },
  )
}
