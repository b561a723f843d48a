// The place of a reader in the feed is the set of transactions whose changes it was told of. PostgreSQL's snapshots are
// such sets: all transactions before a number, except for those that had not ended when the snapshot was taken. A
// transaction that commits late is one of these exceptions until a later snapshot has it, so no change is passed over,
// and none is told twice. Times could not promise that: a change has the time at which its transaction began.

export interface Seen {
  /** No transaction from this number on was seen. */
  before: number
  /** Earlier transactions that were not seen either, because they had not ended; in rising order. */
  except: readonly number[]
}

/** Reads the text of a pg_snapshot: `xmin:xmax:xid,xid,…`. */
export function readSnapshot(text: string): Seen {
  const [, xmax = '', open = ''] = text.split(':')
  return { before: Number(xmax), except: open === '' ? [] : open.split(',').map(Number) }
}

export const isSeen = ({ before, except }: Seen, transaction: number): boolean =>
  transaction < before && !except.includes(transaction)

/** The transactions that are in one of the two sets. */
export function eitherSeen(one: Seen, other: Seen): Seen {
  const open = [...new Set([...one.except, ...other.except])].filter(
    (each) => !isSeen(one, each) && !isSeen(other, each),
  )
  return { before: Math.max(one.before, other.before), except: open.toSorted((a, b) => a - b) }
}

/** A set that is in all of the given sets. */
export function allSeen(sets: readonly Seen[]): Seen {
  const before = Math.min(...sets.map((seen) => seen.before))
  const open = new Set(sets.flatMap((seen) => seen.except).filter((each) => each < before))
  return { before, except: [...open].toSorted((a, b) => a - b) }
}

/** The part of a set that is before a transaction. */
export function seenBefore({ before, except }: Seen, transaction: number): Seen {
  if (transaction >= before) return { before, except }
  return { before: transaction, except: except.filter((each) => each < transaction) }
}

/**
 * The number of a transaction as rows have it (`xmin`), which has the low 32 bits only. A row that is at work was written
 * within the last two billion transactions.
 */
export function wholeNumberOf(low: number, { before }: Seen): number {
  return before + ((low - (before % 2 ** 32)) | 0)
}
