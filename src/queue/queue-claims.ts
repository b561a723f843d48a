// The claims of a queue, the same for every table that is one (queue-table.ts has the contract).
import type { Db, PreparedSql } from '../db/pool.ts'
import {
  type Dealt,
  type DealtColumns,
  dealt,
  dealtColumns,
  type FairAsk,
  fairPick,
  fairValues,
  promoteDue,
  type QueueTable,
  releaseSuspect,
  suspectPick,
} from './queue-table.ts'

export interface ClaimSql {
  /** The prefix of the prepared statements' names. */
  name: string
  /**
   * The statement around a pick (`with … picked (id)`), which comes first; `from` gives the claimed rows as `c`, and
   * `known` is the parameter of `isChecked`.
   */
  around: (pick: string, columns: string, from: string, known: string) => string
  /** The condition for rows that this process may take; the parameter holds the names that the process knows. */
  mayTake?: (parameter: string) => string
  /** True if `around` refuses picked rows that this process may not take, by the names that the process knows. */
  isChecked?: boolean
}

export interface Claims<Claimed> {
  /** Claims fairly over the projects. A process that was declared dead claims nothing before it has a new name. */
  claim(db: Db, ask: FairAsk, known?: readonly string[] | null): Promise<Dealt<Claimed>>
  /** Claims a row whose owners crashed, if no suspect has its turn. The project of the last turn comes last. */
  claimSuspect(db: Db, owner: string, lastProjectId: string, known?: readonly string[] | null): Promise<Claimed | null>
  /** Frees the turn if this owner's suspect has ended or progressed. Returns true if the owner has no suspect now. */
  releaseSuspect(db: Db, owner: string): Promise<boolean>
}

export function createClaims<Claimed extends { id: string }>(
  queue: QueueTable,
  { name, around, mayTake, isChecked = false }: ClaimSql,
): Claims<Claimed> {
  const within = (parameter: string): QueueTable => (mayTake ? { ...queue, mayTake: mayTake(parameter) } : queue)
  const valuesWith = (values: unknown[], known: readonly string[] | null): unknown[] =>
    mayTake || isChecked ? [...values, known] : values
  const claim: PreparedSql = {
    name: `${name}_claim`,
    text: around(
      fairPick(within('$8')),
      `, ${dealtColumns(within('$8'))}${isChecked ? REFUSED : ''}`,
      '(select) as one left join claimed c on true',
      '$8',
    ),
  }
  const claimSuspect: PreparedSql = {
    name: `${name}_claim_suspect`,
    text: around(suspectPick(within('$3')), '', 'claimed c', '$3'),
  }
  return {
    claim: async (db, ask, known = []) => {
      const { rows } = await db.query<Claimed & DealtColumns>(claim, valuesWith(fairValues(ask), known))
      return dealt(rows)
    },
    claimSuspect: async (db, owner, lastProjectId, known = []) => {
      const { rows } = await db.query<Claimed>(claimSuspect, valuesWith([owner, lastProjectId], known))
      return rows[0] ?? null
    },
    releaseSuspect: async (db, owner) => {
      const { rows } = await db.query<{ has_none: boolean }>(releaseSuspect(queue), [owner])
      return rows[0]?.has_none ?? true
    },
  }
}

const REFUSED = `,
  array(select p.id from picked p where not exists (select from claimed where claimed.id = p.id))::text[] as refused`

export async function promoteDueRows(db: Db, queue: QueueTable): Promise<number> {
  const { rowCount } = await db.query(promoteDue(queue))
  return rowCount ?? 0
}
