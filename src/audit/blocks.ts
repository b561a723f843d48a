// The chain over the audit log. A block vouches for the rows in one box, a range of transaction ids times a range of
// seqs, and for the block before it. The hash has no key: a person who may rewrite rows and blocks alike can rewrite
// the whole chain, unless the newest hash was noted somewhere else (verifyAudit returns that hash).
//
// Rows commit out of seq order, so a range of seqs is never known to be complete. A range of transaction ids below the
// snapshot's xmin is complete: every transaction in it has ended. But transaction ids mean something only in the
// cluster that counts them, and a restored database brings rows with ids of another cluster. Regions therefore divide
// the seqs: an open region (seq_until null) goes on at the end and is sealed up to xmin; a closed one has all the rows
// it will ever have, and is sealed to the last. seal.ts says how one region follows another.
import { createHash } from 'node:crypto'
import type { Db } from '../db/pool.ts'

/** Transaction ids have 64 bits and are kept as the text PostgreSQL gives. */
export type Xid = string

export interface Region {
  /** The region's rows have a higher seq than this one. */
  seqAfter: number
  /** The region's rows have no higher seq than this one; null while rows are still added. */
  seqUntil: number | null
}

export interface Box {
  number: number
  /** The first transaction id of the block. */
  xidFrom: Xid
  /** The transaction id after the block's last, at which the region's next block starts. */
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

export const origin: Block = {
  number: 0,
  seqAfter: 0,
  seqUntil: null,
  xidFrom: FIRST_XID,
  xidTo: FIRST_XID,
  seqFrom: 1,
  seqTo: 0,
  rowCount: 0,
  sealedAt: '0',
  hash: Buffer.alloc(32),
}

export interface Head {
  newest: Block
  /** Every transaction with a lower id has ended. */
  xmin: Xid
  /** No row above this seq is in a block. */
  highestSealedSeq: number
  /** True if a row above that seq has an id below the newest block's end: another cluster counted that id. */
  hasFallenBack: boolean
  /** The highest seq of a row whose transaction id this cluster has not given yet: another cluster wrote that row. */
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
  // A separate query, so that the planner knows how few rows these are: it would read the whole log otherwise.
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

/** The last seq of the newest block's region; null while the region is open. */
export function lastSeqOfRegion({ newest, highestSealedSeq, hasFallenBack, highestForeignSeq }: Head): number | null {
  if (newest.seqUntil !== null) return newest.seqUntil
  return hasFallenBack ? highestSealedSeq : highestForeignSeq
}

export interface Contents {
  rowCount: number
  digest: Buffer
}

// Length before text, a dash for null: no two rows have the same encoding. No database setting changes it.
const ROW_TEXT = [
  ...['xid::text', 'seq::text', 'id::text', 'project_id::text', 'action', 'actor_type', 'actor_id', 'target_type'],
  ...['target_id', 'details::text', 'request_id', 'address', micros('at')],
]
  .map((column) => `coalesce(length(${column}) || ':' || ${column}, '-')`)
  .join(' || ')

/** The present contents of the boxes, in the order of their numbers. The rows themselves never leave the database. */
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

/** The hash a block must have, over the block before it, its own numbers and its rows. */
export function hashBlock(block: Omit<Block, 'hash'>, previousHash: Buffer, digest: Buffer): Buffer {
  const { number, seqAfter, seqUntil, xidFrom, xidTo, seqFrom, seqTo, rowCount, sealedAt } = block
  const numbers = [number, seqAfter, seqUntil, xidFrom, xidTo, seqFrom, seqTo, rowCount, sealedAt]
  return createHash('sha256')
    .update(JSON.stringify(['muster.audit.1', previousHash.toString('hex'), ...numbers, digest.toString('hex')]))
    .digest()
}
