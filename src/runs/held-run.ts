import type { Db } from '../db/pool.ts'
import type { Journal } from '../journal/journal.ts'
import { STOPPED } from '../tasks/begin-anew-tasks.ts'
import { endUnowned, runFailed } from './end.ts'

/** Ends a run that was held until a person decided whether its work begins anew, and the person said no. */
export async function endHeld(tx: Db, journal: Journal, runId: string): Promise<void> {
  const { rows } = await tx.query<{ id: string; ancestors: string[] }>(
    `select id, ancestors from agent_runs where id = $1 and status = 'paused' and owner is null and completed_at is null
     for update`,
    [runId],
  )
  const [run] = rows
  if (!run) return
  await endUnowned(tx, journal, run, runFailed('STOPPED', STOPPED, null))
}
