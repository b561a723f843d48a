import { getAgent } from '../agents/agents.ts'
import type { Db } from '../db/pool.ts'
import { insertRun } from '../journal/insert-run.ts'
import { invalidRequest, runNotFound } from '../kernel/errors.ts'
import { newId } from '../kernel/id.ts'
import type { ForkInput, Run } from '../kernel/run.ts'
import { getRun } from './read-runs.ts'
import { requireEnabled } from './start.ts'

interface Source {
  id: string
  agent_id: string
  step_count: number
  max_steps: number | null
  timeout: number | null
  input: unknown
  base_run_id: string | null
  base_seq: number | null
  base_steps: number
  rights: Record<string, unknown>
}

/** A new run that starts from that point of the journal; the original is not touched. */
export async function forkRun(db: Db, projectId: string, runId: string, fork: ForkInput): Promise<Run> {
  const source = await readSource(db, projectId, runId)
  if (!source) throw runNotFound()
  if (fork.after_step > source.step_count) {
    throw invalidRequest(`after_step is ${fork.after_step}, but the run has ${source.step_count} steps.`)
  }
  const agent = await getAgent(db, projectId, fork.agent_id ?? source.agent_id)
  requireEnabled(agent)
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
    base,
  })
  return getRun(db, projectId, id)
}

async function readSource(db: Db, projectId: string, runId: string): Promise<Source | null> {
  const { rows } = await db.query<Source>(
    `select r.id, r.agent_id, r.step_count, r.max_steps, r.timeout, r.input, r.base_run_id, r.base_seq, r.rights,
       r.step_count - (select count(*)::int from run_events e
         where e.run_id = r.id and e.kind = 'step.completed' and not e.data ? 'run_id') as base_steps
     from agent_runs r where id = $1 and project_id = $2`,
    [runId, projectId],
  )
  return rows[0] ?? null
}

/** The last event of that step, its tools' results included, in whichever journal of the chain it stands. */
async function findPoint(
  db: Db,
  projectId: string,
  source: Source,
  afterStep: number,
): Promise<{ runId: string; seq: number; steps: number }> {
  if (afterStep < source.base_steps || (afterStep === source.base_steps && afterStep > 0)) {
    const base = source.base_run_id ? await readSource(db, projectId, source.base_run_id) : null
    if (base) return findPoint(db, projectId, base, afterStep)
  }
  const { rows } = await db.query<{ seq: number | null }>(
    `select coalesce(
       (select max(seq) from run_events where run_id = $1 and not data ? 'run_id'
          and kind in ('step.completed', 'tool.completed', 'tool.started') and (data->>'step')::int = $2),
       (select min(seq) from run_events where run_id = $1 and kind = 'run.started' and not data ? 'run_id')) as seq`,
    [source.id, afterStep],
  )
  const seq = rows[0]?.seq ?? null
  if (seq === null) throw invalidRequest('The run has not started yet, so there is nothing to fork.')
  return { runId: source.id, seq, steps: afterStep }
}
