// Model calls that no run of an agent makes, within the month of their project and the allocations of their payers. The
// upper bound of a call under way counts for both: calls that ask at once overshoot a limit by one call at most.
//
// All transactions about tokens lock in one order: the project, the tokens of its month, its calls, and the tokens of its
// agents by their ids.
import type { Db, Pool } from '../db/pool.ts'
import { inTransaction } from '../db/transaction.ts'
import { type CallVerdict, guardBudget } from '../kernel/guards.ts'
import { newId } from '../kernel/id.ts'
import { guardMonth, noteTokensOfMonth, readLimit } from './month.ts'
import { reserveForCall } from './reserve.ts'

export interface ProjectCalls {
  /**
   * Admits the call, or says why and until when it must wait. The call is also reserved from the allocations of the
   * payers, which are agents; `stop` means that one of them has no tokens left.
   */
  ask(projectId: string, bound: number, payers?: readonly string[]): Promise<AdmittedCall | CallVerdict>
}

export interface AdmittedCall {
  /** Counts the tokens of the call, together with the writes of `also`. */
  settle(tokens: number, also?: (tx: Db) => Promise<void>): Promise<void>
  /** Must be called when the call has ended in any way: its bound counts no more. */
  end(): void
}

interface Asked {
  id: string
  projectId: string
  bound: number
  payers: readonly string[]
  /** True: the project limits its month. */
  isLimited: boolean
}

/**
 * `ownerId` is the name of this process among the workers. The calls of a process that dies no longer count as under
 * way.
 */
export function createProjectCalls({ pool, ownerId }: { pool: Pool; ownerId: () => string }): ProjectCalls {
  const underWay = new Set<string>()

  return { ask }

  async function ask(
    projectId: string,
    bound: number,
    payers: readonly string[] = [],
  ): Promise<AdmittedCall | CallVerdict> {
    const id = newId()
    underWay.add(id)
    let verdict: CallVerdict = { verdict: 'wait', reason: 'budget' }
    try {
      const isLimited = (await readLimit(pool, projectId)) !== null
      const isFree = !isLimited && payers.length === 0
      verdict = isFree ? { verdict: 'go' } : await reserve({ id, projectId, bound, payers, isLimited })
    } finally {
      if (verdict.verdict !== 'go') underWay.delete(id)
    }
    if (verdict.verdict !== 'go') return verdict
    return { settle: (tokens, also) => settle(id, projectId, tokens, also), end: () => void underWay.delete(id) }
  }

  /** Deletes rows of dead processes, and of this process's calls that could not be settled. */
  async function forgetLeftBehind(projectId: string): Promise<void> {
    await pool.query(
      `delete from project_calls where id in (
         select c.id from project_calls c where c.project_id = $1 and ((c.worker_id = $2 and c.id <> all($3::uuid[]))
           or not exists (select from workers w where w.id = c.worker_id)) for update skip locked)`,
      [projectId, ownerId(), [...underWay]],
    )
  }

  async function reserve({ id, projectId, bound, payers, isLimited }: Asked): Promise<CallVerdict> {
    await forgetLeftBehind(projectId)
    return inTransaction(pool, async (tx) => {
      const verdict: CallVerdict = isLimited ? await guardMonth(tx, projectId, bound) : { verdict: 'go' }
      if (verdict.verdict !== 'go') return verdict
      await tx.query('insert into project_calls (id, project_id, worker_id, bound) values ($1, $2, $3, $4)', [
        id,
        projectId,
        ownerId(),
        bound,
      ])
      if (payers.length === 0) return verdict
      const facts = await reserveForCall(tx, { callId: id, agentIds: payers, bound })
      if (!facts || facts.isAdmitted) return verdict
      await tx.query('delete from project_calls where id = $1', [id])
      const { allocation, used, reserved } = facts
      return guardBudget({ allocation, used, reserved, bound, isFirstCall: false })
    })
  }

  async function settle(
    id: string,
    projectId: string,
    tokens: number,
    also: (tx: Db) => Promise<void> = async () => {},
  ): Promise<void> {
    await inTransaction(pool, async (tx) => {
      await noteTokensOfMonth(tx, projectId, tokens)
      await tx.query('delete from project_calls where id = $1', [id])
      await also(tx)
    })
  }
}
