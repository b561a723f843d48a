import type { Db } from '../db/pool.ts'
import { callsOfTasks, type MadeCall } from '../journal/finished-calls.ts'

/** The calls of all attempts at the task and at the tasks below it: they are one piece of work. */
export async function callsOfWork(tx: Db, taskId: string): Promise<MadeCall[]> {
  return callsOfFamily(tx, taskId, '')
}

/** The calls of the task itself, and of the tasks below it that are not completed. */
export async function callsOfUnfinished(tx: Db, taskId: string): Promise<MadeCall[]> {
  return callsOfFamily(tx, taskId, `and t.status <> 'completed'`)
}

async function callsOfFamily(tx: Db, taskId: string, which: string): Promise<MadeCall[]> {
  const { rows } = await tx.query<{ id: string }>(
    `with recursive family (id) as (
       select $1::uuid union select t.id from family f join tasks t on t.parent_task_id = f.id ${which}
     )
     select id from family`,
    [taskId],
  )
  return callsOfTasks(
    tx,
    rows.map((row) => row.id),
  )
}
