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
  const source = createReader(open, known.length)
  const items = [...known]
  let page: unknown[] = []
  let characters = 0
  const flush = async (isLast: boolean): Promise<void> => {
    await write({ from: items.length - page.length, items: page, isLast })
    page = []
    characters = 0
  }
  try {
    for (let read = await source.next(); read !== null; read = await source.next()) {
      if (signal.aborted) return { status: 'failed', error: 'The source was stopped.' }
      if ('error' in read) return { status: 'failed', error: read.error }
      if ('whole' in read) return { status: 'completed', value: read.whole }
      const recorded = asRecorded(read.item)
      page.push(recorded.value)
      items.push(recorded.value)
      characters += recorded.characters
      if (items.length > MOST_ITEMS)
        return { status: 'failed', error: `The source gave more than ${MOST_ITEMS} items.` }
      if (page.length >= PAGE_ITEMS || characters >= PAGE_CHARACTERS) await flush(false)
    }
  } finally {
    source.close()
  }
  if (items.length === page.length) return { status: 'completed', value: items }
  await flush(true)
  return { status: 'completed', value: items, onRecord: 'pages' }
}

type Read = { item: unknown } | { whole: unknown } | { error: string }

/** The values of the function, from a place on; null after the last. A generator would wait once more for each. */
function createReader(open: () => unknown, from: number): { next(): Promise<Read | null>; close(): void } {
  let index = 0
  let iterator: ReturnType<typeof iteratorFrom> | null = null
  return {
    next: async () => {
      try {
        if (!iterator) {
          const given = await open()
          if (!isIterable(given)) return { whole: asJson(given) }
          iterator = iteratorFrom(given, from)
          index = from - iterator.known
        }
        for (;;) {
          const step = await iterator.values.next()
          if (step.done) return null
          const value = isPromise(step.value) ? await step.value : step.value
          if (index++ >= from) return { item: asJson(value) }
        }
      } catch (error) {
        return { error: `The source failed at item ${index}: ${errorText(error)}` }
      }
    },
    // The iterator may hold a resource open, so it is closed. Nothing waits for the closing.
    close: () => void (async () => iterator?.values.return?.())().catch(() => undefined),
  }
}

const isPromise = (value: unknown): boolean => typeof value === 'object' && value !== null && 'then' in value

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
