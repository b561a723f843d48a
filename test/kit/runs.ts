// Rows that tests of runs need.

import type { Db, Pool } from '../../src/db/pool.ts'
import { createJournal } from '../../src/journal/append.ts'
import { takeOver } from '../../src/journal/take-over.ts'
import { newId } from '../../src/kernel/id.ts'
import { silentLog } from '../../src/kernel/log.ts'
import { forgetWorker } from '../../src/queue/workers.ts'
import { closeCalls } from '../../src/tasks/close-questions.ts'

export async function insertProject(db: Db, name = 'A project'): Promise<string> {
  const id = newId()
  await db.query('insert into projects (id, name) values ($1, $2)', [id, name])
  return id
}

/** Inserts runs that are owned under fence 1, as after a claim. */
export async function insertRuns(db: Db, projectId: string, count: number): Promise<string[]> {
  const ids = Array.from({ length: count }, () => newId())
  await db.query(
    `insert into agent_runs (id, project_id, agent_id, trigger, input, rights, fence, status, started_at, ready_at)
     select unnest($1::uuid[]), $2, $3, '{"type":"manual"}', '"hello"', '{}', 1, 'running', muster.now(), null`,
    [ids, projectId, newId()],
  )
  return ids
}

/** Inserts the row of a process that claims runs. */
export async function insertWorker(db: Db): Promise<string> {
  const id = newId()
  await db.query(
    `insert into workers (id, slots, lease_until, lock_key, locked_on) values ($1, 10, muster.now(), 1, now())`,
    [id],
  )
  return id
}

/** Declares a process dead, as another process does. */
export async function buryWorker(pool: Pool, id: string): Promise<void> {
  const journal = createJournal({ db: pool, log: silentLog })
  await takeOver({ pool, journal, onEnded: closeCalls }, id, (tx) => forgetWorker(tx, id))
}
