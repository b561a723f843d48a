import type { Db } from '../db/pool.ts'
import type { AuditVerdict } from '../kernel/access.ts'
import {
  type Block,
  type Contents,
  digestBoxes,
  type Head,
  hashBlock,
  LAST_SEQ,
  lastSeqOfRegion,
  listBlocks,
  origin,
  readHead,
} from './blocks.ts'

const BATCH_BLOCKS = 500
const BATCH_ROWS = 20_000
const PAGE_ROWS = 100_000

/**
 * Recomputes the whole chain, in bounded memory and without blocking others. Finds a row that was altered, deleted,
 * moved or slipped in below the newest block, and a block that was altered, swapped or taken out. A cut-off end cannot
 * be found: compare `head` and `rows` with values noted elsewhere.
 */
export async function verifyAudit(db: Db): Promise<AuditVerdict> {
  const verdict = await verifyOnce(db)
  // The first new row after a restore may be committed between these queries. The second round finds it unsealed.
  return 'strays' in verdict ? verifyOnce(db) : verdict
}

type Failed = Extract<AuditVerdict, { ok: false }>

async function verifyOnce(db: Db): Promise<AuditVerdict | (Failed & { strays: number })> {
  const head = await readHead(db)
  const upTo = head.newest.number
  let previous = origin
  let sealed = 0
  while (previous.number < upTo) {
    const batch = takeBatch(await listBlocks(db, { after: previous.number, upTo, limit: BATCH_BLOCKS }))
    if (batch.length === 0) return missing(previous.number + 1)
    const contents = await digestBoxes(db, batch)
    for (const [index, block] of batch.entries()) {
      const failed = examine(block, previous, contents[index])
      if (failed) return failed
      previous = block
      sealed += block.rowCount
    }
  }
  const count = await countRows(db, head)
  const strays = count.sealed - sealed
  if (strays !== 0)
    return { ok: false, block: upTo, strays, reason: `Rows that are as old as this block and in no block: ${strays}.` }
  return { ok: true, blocks: upTo, rows: sealed, unsealed: count.unsealed, head: previous.hash.toString('hex') }
}

/** Takes as many blocks as one query reads in about a second, and at least one. */
function takeBatch(blocks: Block[]): Block[] {
  let rows = 0
  const end = blocks.findIndex((block, index) => {
    rows += block.rowCount
    return index > 0 && rows > BATCH_ROWS
  })
  return end === -1 ? blocks : blocks.slice(0, end)
}

function examine(block: Block, previous: Block, contents: Contents | undefined): Failed | null {
  const number = previous.number + 1
  if (block.number !== number) return missing(number)
  if (contents?.rowCount !== block.rowCount) {
    const reason = `The block was sealed with ${block.rowCount} rows and has ${contents?.rowCount ?? 0}.`
    return { ok: false, block: number, reason }
  }
  if (!hashBlock(block, previous.hash, contents.digest).equals(block.hash)) {
    return {
      ok: false,
      block: number,
      reason: 'A row in the block, or the block itself, was changed after it was sealed.',
    }
  }
  return null
}

const missing = (block: number): Failed => ({ ok: false, block, reason: 'The block is missing.' })

// The rows that are yet to be sealed. All other rows must be in a block, so rows that are committed or sealed during
// the count do not change the number of sealed ones.
const UNSEALED = '(seq > $1 or (seq > $2 and xid >= $3::xid8))'

async function countRows(db: Db, head: Head): Promise<{ sealed: number; unsealed: number }> {
  const total = { sealed: 0, unsealed: 0 }
  const unsealed = [lastSeqOfRegion(head) ?? LAST_SEQ, head.newest.seqAfter, head.newest.xidTo]
  let after = Number.MIN_SAFE_INTEGER
  for (;;) {
    const { rows } = await db.query<{ sealed: number; unsealed: number; last: number | null }>(
      `select count(*) filter (where not ${UNSEALED}) as sealed, count(*) filter (where ${UNSEALED}) as unsealed,
         max(seq) as last
       from (select seq, xid from audit_log where seq > $4 order by seq limit $5) page`,
      [...unsealed, after, PAGE_ROWS],
    )
    const page = rows[0]
    if (typeof page?.last !== 'number') return total
    total.sealed += page.sealed
    total.unsealed += page.unsealed
    after = page.last
  }
}
