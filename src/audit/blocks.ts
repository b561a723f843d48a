// The chain over the audit log. A block vouches for the rows in one box, a range of transaction ids times a range of
// seqs, and for the block before it. The hash has no key: whoever may rewrite rows and blocks alike can rewrite the
// whole chain, unless its newest hash was noted somewhere else (verifyAudit answers it).
//
// Rows commit out of seq order, so a range of seqs is never known to be complete. A range of transaction ids below the
// snapshot's xmin is: everything in it has ended. But ids mean something only in the cluster that counts them, and a
// restored database brings rows with ids of another. Hence regions, which divide the seqs: an open region
// (seq_until null) goes on at the end and is sealed up to xmin; a closed one has all the rows it will ever have,
// whatever their ids, and is sealed to the last. seal.ts says how one region follows another.
import { createHash } from 'node:crypto'
import type { Db } from '../db/pool.ts'

/** Transaction ids have 64 bits and are kept as the text PostgreSQL gives. */
export type Xid = string

export interface Region {
  /** The region's rows have a higher seq than this one. */
  seqAfter: number
  /** And none higher than this one; null while rows are still added. */
  seqUntil: number | null
}

export interface Box {
  number: number
  /** Inclusive. */
  xidFrom: Xid
  /** Exclusive: where the region's next block starts. */
  xidTo: Xid
  seqFrom: number
  seqTo: number
}

export interface Block extends Region, Box {
  rowCount: number
  /** Microseconds since 1970. */
  sealedAt: string
  hash: Buffer
}

export const FIRST_XID: Xid = '0'
export const LAST_XID: Xid = '18446744073709551615'
export const LAST_SEQ = '9223372036854775807'

/** What stands before the first block. */
export const origin: Block = {
  ...{ number: 0, seqAfter: 0, seqUntil: null, xidFrom: FIRST_XID, xidTo: FIRST_XID, seqFrom: 1, seqTo: 0 },
  ...{ rowCount: 0, sealedAt: '0', hash: Buffer.alloc(32) },
}

/** Where the sealing stands. */
export interface Head {
  newest: Block
  /** Every transaction with a lower id has ended. */
  xmin: Xid
  /** No row above this seq is in a block. */
  highestSealedSeq: number
  /** There is a row above that with a lower id than the newest block's end: one that came under another counting. */
  hasFallenBack: boolean
  /** The highest seq of a row whose id this cluster has not given yet: one that another cluster wrote. */
  highestForeignSeq: number | null
  /** Microseconds since 1970. */
  now: string
}

const micros = (column: string): string => `trim_scale(extract(epoch from ${column}) * 1000000)::text`

const BLOCK_COLUMNS = `number, seq_after as "seqAfter", seq_until as "seqUntil", xid_from::text as "xidFrom",
  xid_to::text as "xidTo", seq_from as "seqFrom", seq_to as "seqTo", row_count as "rowCount",
  ${micros('sealed_at')} as "sealedAt", hash`

export async function readHead(db: Db): Promise<Head> {
  const { rows } = await db.query<Block>(`select ${BLOCK_COLUMNS} from audit_blocks order by number desc limit 1`)
  const newest = rows[0] ?? origin
  const highest = await db.query<{ seq: number }>('select coalesce(max(seq_to), 0) as seq from audit_blocks')
  const highestSealedSeq = highest.rows[0]?.seq ?? 0
  // A question of its own, so that the planner knows how few rows these are: it would read the whole log otherwise.
  const unsealed = await db.query<Omit<Head, 'newest' | 'highestSealedSeq'>>(
    `select coalesce(bool_or(xid < $2::xid8), false) as "hasFallenBack",
       max(seq) filter (where xid >= pg_snapshot_xmax(pg_current_snapshot())) as "highestForeignSeq",
       pg_snapshot_xmin(pg_current_snapshot())::text as xmin, ${micros('muster.now()')} as now
     from audit_log where seq > $1`,
    [highestSealedSeq, newest.xidTo],
  )
  const found = unsealed.rows[0]
  if (!found) throw new Error('the state of the audit chain could not be read')
  return { newest, highestSealedSeq, ...found }
}

export async function listBlocks(
  db: Db,
  { after, upTo, limit }: { after: number; upTo: number; limit: number },
): Promise<Block[]> {
  const { rows } = await db.query<Block>(
    `select ${BLOCK_COLUMNS} from audit_blocks where number > $1 and number <= $2 order by number limit $3`,
    [after, upTo, limit],
  )
  return rows
}

/** Where the newest block's region ends; null where it is open and stays so. */
export function lastSeqOfRegion({ newest, highestSealedSeq, hasFallenBack, highestForeignSeq }: Head): number | null {
  if (newest.seqUntil !== null) return newest.seqUntil
  return hasFallenBack ? highestSealedSeq : highestForeignSeq
}

export interface Contents {
  rowCount: number
  digest: Buffer
}

// Length before text, a dash for null: no two rows have the same encoding. Nothing here depends on a session's settings.
const ROW_TEXT = [
  ...['xid::text', 'seq::text', 'id::text', 'project_id::text', 'action', 'actor_type', 'actor_id', 'target_type'],
  ...['target_id', 'details::text', 'request_id', 'address', micros('at')],
]
  .map((column) => `coalesce(length(${column}) || ':' || ${column}, '-')`)
  .join(' || ')

/** What the boxes hold now, in the order of their numbers. The rows themselves never leave the database. */
export async function digestBoxes(db: Db, boxes: readonly Box[]): Promise<Contents[]> {
  const { rows } = await db.query<Contents>(
    `select contents.*
     from unnest($1::bigint[], $2::xid8[], $3::xid8[], $4::bigint[], $5::bigint[])
       as box (number, xid_from, xid_to, seq_from, seq_to)
     cross join lateral (
       select count(*)::int as "rowCount",
         sha256(coalesce(string_agg(sha256(convert_to(${ROW_TEXT}, 'UTF8')), ''::bytea order by xid, seq), '')) as digest
       from audit_log
       where xid >= box.xid_from and xid < box.xid_to and seq >= box.seq_from and seq <= box.seq_to
     ) contents
     order by box.number`,
    [
      boxes.map((box) => box.number),
      boxes.map((box) => box.xidFrom),
      boxes.map((box) => box.xidTo),
      boxes.map((box) => box.seqFrom),
      boxes.map((box) => box.seqTo),
    ],
  )
  return rows
}

/** The block's hash as it must be, over the block before it, its own numbers and the rows it holds. */
export function hashBlock(block: Omit<Block, 'hash'>, previousHash: Buffer, digest: Buffer): Buffer {
  const { number, seqAfter, seqUntil, xidFrom, xidTo, seqFrom, seqTo, rowCount, sealedAt } = block
  const numbers = [number, seqAfter, seqUntil, xidFrom, xidTo, seqFrom, seqTo, rowCount, sealedAt]
  return createHash('sha256')
    .update(JSON.stringify(['muster.audit.1', previousHash.toString('hex'), ...numbers, digest.toString('hex')]))
    .digest()
}
