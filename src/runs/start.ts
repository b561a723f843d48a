// Whatever starts a run (a person, a schedule, a senior, a flow) comes through here. The run is accepted when the
// transaction commits, and from then on it is never lost; who works on it and when is the queue's business.
import { getAgent } from '../agents/agents.ts'
import type { Db } from '../db/pool.ts'
import { insertRun } from '../journal/insert-run.ts'
import type { Agent } from '../kernel/agent.ts'
import { conflict } from '../kernel/errors.ts'
import { newId } from '../kernel/id.ts'
import type { Run, TriggerType } from '../kernel/run.ts'
import { getRun } from './read-runs.ts'

export interface StartOptions {
  input: unknown
  trigger: Readonly<Record<string, unknown>> & { type: TriggerType }
  timeoutMs?: number | undefined
  maxSteps?: number | undefined
  priority?: number
}

/** Inserts the run; whoever commits says that something is ready. A disabled agent starts nothing. */
export async function startRun(db: Db, projectId: string, agentId: string, options: StartOptions): Promise<Run> {
  const agent = await getAgent(db, projectId, agentId)
  requireEnabled(agent)
  const id = newId()
  await insertRun(db, {
    id,
    projectId,
    agentId,
    trigger: options.trigger,
    input: options.input,
    maxSteps: options.maxSteps ?? agent.max_steps,
    timeoutMs: options.timeoutMs ?? agent.default_timeout,
    ...(options.priority === undefined ? {} : { priority: options.priority }),
  })
  return getRun(db, projectId, id)
}

export function requireEnabled(agent: Agent): void {
  if (!agent.enabled) throw conflict(`The agent ${agent.name} is disabled. Enable it first.`)
}
