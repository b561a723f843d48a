import type { Db } from '../db/pool.ts'
import type { NewRun } from '../journal/insert-run.ts'
import { conflict, invalidRequest } from '../kernel/errors.ts'
import { rightsOfBoth } from '../kernel/rights.ts'
import { historyOf } from './continue-run.ts'
import type { OwnedRun } from './owned-run.ts'
import { lockResumable } from './resume.ts'

/**
 * The sub-run as a continuation of a sub-run that ended without completing, within the rights of both. Throws unless this run, or the run that
 * it continues, started that one: to know the id of a run is not enough. `isSilent`: its history has the input already.
 */
export async function continued(
  tx: Db,
  { run, rights }: Pick<OwnedRun, 'run' | 'rights'>,
  fresh: NewRun,
  { id: pausedId, isSilent }: { id: string; isSilent: boolean },
): Promise<NewRun> {
  if (!(await hasSpawned(tx, run.id, pausedId))) {
    throw invalidRequest('resume_run_id names no run that you started with spawn_agent.')
  }
  const paused = await lockResumable(tx, run.project_id, pausedId)
  if (paused.agent_id !== fresh.agentId) throw invalidRequest('resume_run_id is a run of another agent.')
  if (paused.pause_reason === 'outcome_unknown') {
    throw conflict(
      'A person must first give the outcome of a call of that run. Do not have its work done again; ask a person, or continue without it.',
    )
  }
  return {
    ...fresh,
    trigger: { ...fresh.trigger, resumed_from: pausedId },
    input: isSilent && paused.started_at !== null ? null : fresh.input,
    ...historyOf(paused),
    rights: { ...rightsOfBoth(rights, paused.rights) },
    chainDepth: Math.max(run.chain_depth, paused.chain_depth),
  }
}

/** SQL: the run $1 and the runs that it continues. */
export const CHAIN = `chain (id, resumed_from) as (
    select id, resumed_from from agent_runs where id = $1
    union select r.id, r.resumed_from from chain c join agent_runs r on r.id = c.resumed_from
  )`

async function hasSpawned(tx: Db, runId: string, childId: string): Promise<boolean> {
  const { rowCount } = await tx.query(
    `with recursive ${CHAIN}
     select from agent_runs c where c.id = $2 and c.parent_run_id in (select id from chain)`,
    [runId, childId],
  )
  return rowCount === 1
}
