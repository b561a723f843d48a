// Reads the things that a pattern works on from the function that gives them, in pages that are journalled one by one.
// The next owner of the flow reads on after the last page.
import type { Db } from '../../db/pool.ts'
import { errorText } from '../../kernel/error-text.ts'
import type { LeafOutcome } from '../machine/machine.ts'
import { asRecorded } from '../pipeline/as-recorded.ts'
import { asJson, iteratorFrom } from '../pipeline/read-source.ts'

const PAGE_ITEMS = 5_000
const PAGE_CHARACTERS = 1_048_576
const MOST_ITEMS = 1_000_000

export interface ItemsRead {
  open: () => unknown
  /** The items that are on record already. */
  known: readonly unknown[]
  signal: AbortSignal
  /** Resolves when the page is committed. */
  write: (page: { from: number; items: unknown[]; isLast: boolean }) => Promise<void>
}

/** Reads the items. Items of more than one page are on record. Rejects if a page cannot be written. */
export async function readItems({ open, known, signal, write }: ItemsRead): Promise<LeafOutcome> {
  const items = [...known]
  let page: unknown[] = []
  let characters = 0
  const flush = async (isLast: boolean): Promise<void> => {
    await write({ from: items.length - page.length, items: page, isLast })
    page = []
    characters = 0
  }
  for await (const read of valuesOf(open, known.length)) {
    if (signal.aborted) return { status: 'failed', error: 'The source was stopped.' }
    if ('error' in read) return { status: 'failed', error: read.error }
    if ('whole' in read) return { status: 'completed', value: read.whole }
    const recorded = asRecorded(read.item)
    page.push(recorded.value)
    items.push(recorded.value)
    characters += recorded.characters
    if (items.length > MOST_ITEMS) return { status: 'failed', error: `The source gave more than ${MOST_ITEMS} items.` }
    if (page.length >= PAGE_ITEMS || characters >= PAGE_CHARACTERS) await flush(false)
  }
  if (items.length === page.length) return { status: 'completed', value: items }
  await flush(true)
  return { status: 'completed', value: items, onRecord: 'pages' }
}

type Read = { item: unknown } | { whole: unknown } | { error: string }

/** The values of the function, from a place on. The last value is an error if one occurred. */
async function* valuesOf(open: () => unknown, from: number): AsyncGenerator<Read> {
  let index = 0
  try {
    const given = await open()
    if (!isIterable(given)) return yield { whole: asJson(given) }
    const { values, known } = iteratorFrom(given, from)
    index = from - known
    try {
      for (let step = await values.next(); !step.done; step = await values.next()) {
        const value = await step.value
        if (index++ >= from) yield { item: asJson(value) }
      }
    } finally {
      // The iterator may hold a resource open, so it is closed. Nothing waits for the closing.
      Promise.resolve(values.return?.()).catch(() => undefined)
    }
  } catch (error) {
    yield { error: `The source failed at item ${index}: ${errorText(error)}` }
  }
}

const isIterable = (given: unknown): boolean =>
  given !== null && typeof given === 'object' && (Symbol.iterator in given || Symbol.asyncIterator in given)

export async function readPages(db: Db, flowRunId: string, leafId: string): Promise<unknown[]> {
  const { rows } = await db.query<{ items: unknown[] }>(
    `select data->'items' as items from flow_events
     where run_id = $1 and kind = 'source.page' and data->>'task_id' = $2 order by seq`,
    [flowRunId, leafId],
  )
  return rows.flatMap((row) => row.items)
}
