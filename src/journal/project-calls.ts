// Model calls that no agent makes, within the month of their project. A call that was admitted is under way until its
// tokens are counted, and its upper bound counts for the month meanwhile: calls that ask at once overshoot the limit by
// one call at most, together with those of agents.
import type { Db, Pool } from '../db/pool.ts'
import { inTransaction } from '../db/transaction.ts'
import type { CallVerdict } from '../kernel/guards.ts'
import { newId } from '../kernel/id.ts'
import { guardMonth, noteTokensOfMonth, readLimit } from './month.ts'

export interface ProjectCalls {
  /** Null: there is no room for this call now. */
  admit(projectId: string, bound: number): Promise<AdmittedCall | null>
  /** As `admit`, for a caller that can wait: the verdict says until when. */
  ask(projectId: string, bound: number): Promise<AdmittedCall | CallVerdict>
}

export interface AdmittedCall {
  /** Counts the tokens of the call, together with the writes of `also`. */
  settle(tokens: number, also?: (tx: Db) => Promise<void>): Promise<void>
  /** The call has ended, however: its bound counts no more, even if its tokens could not be counted. */
  end(): void
}

/** `ownerId` is the name of this process among the workers: the calls of a process that dies are under way no more. */
export function createProjectCalls({ pool, ownerId }: { pool: Pool; ownerId: () => string }): ProjectCalls {
  const underWay = new Set<string>()

  return {
    admit: async (projectId, bound) => {
      const asked = await ask(projectId, bound)
      return 'verdict' in asked ? null : asked
    },
    ask,
  }

  async function ask(projectId: string, bound: number): Promise<AdmittedCall | CallVerdict> {
    const id = newId()
    underWay.add(id)
    let verdict: CallVerdict = { verdict: 'wait', reason: 'budget' }
    try {
      verdict = (await readLimit(pool, projectId)) === null ? { verdict: 'go' } : await reserve(id, projectId, bound)
    } finally {
      if (verdict.verdict !== 'go') underWay.delete(id)
    }
    if (verdict.verdict !== 'go') return verdict
    return { settle: (tokens, also) => settle(id, projectId, tokens, also), end: () => void underWay.delete(id) }
  }

  async function reserve(id: string, projectId: string, bound: number): Promise<CallVerdict> {
    return inTransaction(pool, async (tx) => {
      // Rows that were left behind: those of dead processes, and of calls of this one that could not be settled.
      await tx.query(
        `delete from project_calls c where c.project_id = $1 and ((c.worker_id = $2 and c.id <> all($3::uuid[]))
           or not exists (select from workers w where w.id = c.worker_id))`,
        [projectId, ownerId(), [...underWay]],
      )
      const verdict = await guardMonth(tx, projectId, bound)
      if (verdict.verdict !== 'go') return verdict
      await tx.query('insert into project_calls (id, project_id, worker_id, bound) values ($1, $2, $3, $4)', [
        id,
        projectId,
        ownerId(),
        bound,
      ])
      return verdict
    })
  }

  async function settle(
    id: string,
    projectId: string,
    tokens: number,
    also: (tx: Db) => Promise<void> = async () => {},
  ): Promise<void> {
    await inTransaction(pool, async (tx) => {
      await tx.query('delete from project_calls where id = $1', [id])
      await noteTokensOfMonth(tx, projectId, tokens)
      await also(tx)
    })
  }
}
