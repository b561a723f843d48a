// The items of muster.ask_each are units of resume: an answer is committed with the tokens of its call, and a question
// that has an answer is not asked again, in any life of its leaf, nor in a flow run that resumes this one.
import { hash } from 'node:crypto'
import type { Db } from '../../db/pool.ts'
import type { AskedItem } from '../definition/built-in-functions.ts'
import { unitOf } from '../machine/leaf-id.ts'

/** One item of a leaf of a flow run. */
export interface ItemOf extends AskedItem {
  flowRunId: string
  leafId: string
}

const questionOf = (prompt: string): string => hash('sha256', prompt, 'base64url')

/** The answer to this very question, or null if it has none. */
export async function findAnswer(
  db: Db,
  { flowRunId, leafId, call, place }: ItemOf,
  prompt: string,
): Promise<string | null> {
  const { rows } = await db.query<{ answer: string }>(
    `with recursive chain (id, resumed_from) as (
       select id, resumed_from from flow_runs where id = $1
       union all select f.id, f.resumed_from from chain c join flow_runs f on f.id = c.resumed_from
     )
     select answer from chain c join flow_answers a on a.flow_run_id = c.id
     where md5(task_id) = md5($2) and call = $3 and place = $4 and question = $5 limit 1`,
    [flowRunId, unitOf(leafId), call, place, questionOf(prompt)],
  )
  return rows[0]?.answer ?? null
}

/**
 * Called in the transaction that counts the tokens of the answer. A text that the database cannot hold is not kept; the
 * leaf fails with it. The first answer to a question stays: the owner before may answer late. Nothing is written for a
 * flow run that is gone.
 */
export async function noteItemAnswer(
  tx: Db,
  { flowRunId, leafId, call, place }: ItemOf,
  { prompt, answer }: { prompt: string; answer: string },
): Promise<void> {
  if (answer.includes('\0') || !answer.isWellFormed()) return
  await tx.query(
    `insert into flow_answers (flow_run_id, task_id, call, place, question, answer)
     select id, $2, $3, $4, $5, $6 from flow_runs where id = $1
     on conflict (flow_run_id, md5(task_id), call, place) do update set
       question = excluded.question, answer = excluded.answer
     where flow_answers.question <> excluded.question`,
    [flowRunId, unitOf(leafId), call, place, questionOf(prompt), answer],
  )
}
