import type { Db } from '../db/pool.ts'
import { MusterError } from '../kernel/errors.ts'
import { fault } from '../kernel/fault.ts'
import type { Run } from '../kernel/run.ts'
import { askAboutOutcome, type Outcome } from '../tasks/outcome-tasks.ts'
import { stopped } from './end.ts'
import { resumeRun } from './resume.ts'
import type { PendingCall } from './run-state.ts'
import { appendWritten, type Session } from './session.ts'

/** The outcome of the call is unknown: the run pauses, and in the same commit people are asked. */
export async function leaveUndecided(session: Session, call: PendingCall): Promise<void> {
  const { run, state, agent } = session
  const end = stopped('outcome_unknown', state.text || null, { undecided: call })
  await appendWritten(session, async (tx) => {
    await askAboutOutcome(tx, {
      projectId: run.project_id,
      runId: run.id,
      agentId: agent.id,
      isOfSupervisor: run.agent_id === null,
      callId: call.id,
      name: call.name,
      args: call.args,
    })
    return { events: [end.event], change: { set: end.set } }
  })
  await fault('final.after_commit')
}

/**
 * A person's word lets the run go on, in a new run. Null: nothing can go on, because the run was removed, its agent was
 * deleted, or it was a specialist's, whose supervisor has gone on without it; the word stands all the same.
 */
export async function decideOutcome(tx: Db, projectId: string, runId: string, outcome: Outcome): Promise<Run | null> {
  if (await isOfSupervisor(tx, runId)) return null
  try {
    return await resumeRun(tx, projectId, runId, { outcome })
  } catch (error) {
    if (error instanceof MusterError && error.status === 404) return null
    throw error
  }
}

async function isOfSupervisor(tx: Db, runId: string): Promise<boolean> {
  const { rows } = await tx.query<{ agent_id: string | null }>('select agent_id from agent_runs where id = $1', [runId])
  return rows[0]?.agent_id === null
}

/** Locks the run before its task, as a resume does, so that two who decide at once do not wait for each other. */
export async function lockUndecided(tx: Db, runId: string): Promise<void> {
  await tx.query('select from agent_runs where id = $1 for update', [runId])
}
