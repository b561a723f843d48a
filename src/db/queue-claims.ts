// The claims of a queue, the same for every table that is one (queue-table.ts has the contract).
import type { Db, PreparedSql } from './pool.ts'
import {
  DEALT_COLUMNS,
  type Dealt,
  dealt,
  type FairAsk,
  fairPick,
  fairValues,
  promoteDue,
  type QueueTable,
  releaseSuspect,
  suspectPick,
} from './queue-table.ts'

export interface ClaimSql {
  /** Of the prepared statements. */
  name: string
  /**
   * The statement around a pick: `with … picked (id)` before it, further columns after its own, and `from`, which gives
   * the claimed rows as `c`.
   */
  around: (pick: string, columns: string, from: string) => string
  /** The rows that this process may take, by the names it knows, which the parameter holds. Absent: it may take all. */
  mayTake?: (parameter: string) => string
}

export interface Claims<Claimed> {
  /** As fair as can be. A process that was declared dead claims nothing before it has a new name. */
  claim(db: Db, ask: FairAsk, known?: readonly string[]): Promise<Dealt<Claimed>>
  /** A row that took processes with it, where no suspect is under way. */
  claimSuspect(db: Db, owner: string, known?: readonly string[]): Promise<Claimed | null>
  /** Lets the next suspect be taken, where this owner's has ended or progressed. True: it has none now. */
  releaseSuspect(db: Db, owner: string): Promise<boolean>
}

export function createClaims<Claimed extends { id: string }>(
  queue: QueueTable,
  { name, around, mayTake }: ClaimSql,
): Claims<Claimed> {
  const within = (parameter: string): QueueTable => (mayTake ? { ...queue, mayTake: mayTake(parameter) } : queue)
  const valuesWith = (values: unknown[], known: readonly string[]): unknown[] => (mayTake ? [...values, known] : values)
  const claim: PreparedSql = {
    name: `${name}_claim`,
    text: around(fairPick(within('$8')), `, ${DEALT_COLUMNS}`, '(select) as one left join claimed c on true'),
  }
  const claimSuspect: PreparedSql = {
    name: `${name}_claim_suspect`,
    text: around(suspectPick(within('$2')), '', 'claimed c'),
  }
  return {
    claim: async (db, ask, known = []) => {
      const { rows } = await db.query<Claimed & { cursor: string | null; may_have_more: boolean }>(
        claim,
        valuesWith(fairValues(ask), known),
      )
      return dealt(rows)
    },
    claimSuspect: async (db, owner, known = []) => {
      const { rows } = await db.query<Claimed>(claimSuspect, valuesWith([owner], known))
      return rows[0] ?? null
    },
    releaseSuspect: async (db, owner) => {
      const { rows } = await db.query<{ has_none: boolean }>(releaseSuspect(queue), [owner])
      return rows[0]?.has_none ?? true
    },
  }
}

/** Rows whose time has come want an owner. Answers how many. */
export async function promoteDueRows(db: Db, queue: QueueTable): Promise<number> {
  const { rowCount } = await db.query(promoteDue(queue))
  return rowCount ?? 0
}
