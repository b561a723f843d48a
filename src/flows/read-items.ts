// Reads the items of a map, or the problem of a fork, that a function gives: a list or any iterable, read in pages that
// are journalled one by one. The next owner of the flow reads on after the last page.
import type { Db } from '../db/pool.ts'
import { toJsonResult } from '../tools/json-result.ts'
import type { LeafOutcome } from './machine.ts'
import { asRecorded } from './pipeline/as-recorded.ts'
import { messageOf } from './pipeline/parts.ts'
import { iteratorFrom } from './pipeline/read-source.ts'

const PAGE_ITEMS = 5_000
const PAGE_CHARACTERS = 1_048_576
const MOST_BYTES = 16 * 1_048_576
const MOST_ITEMS = 1_000_000

export interface ItemsRead {
  /** Calls the function, once in each life of the flow run. */
  open: () => unknown
  /** The items that are on record already. */
  known: readonly unknown[]
  signal: AbortSignal
  /** Resolves when the page is committed. */
  write: (page: { from: number; items: unknown[]; isLast: boolean }) => Promise<void>
}

/** Items of more than one page are on record, and the outcome says so. Rejects where a page cannot be written. */
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
    if (signal.aborted) return { status: 'failed', error: 'It was stopped.' }
    if ('error' in read) return { status: 'failed', error: read.error }
    if ('whole' in read) return { status: 'completed', value: read.whole }
    const recorded = asRecorded(read.item)
    page.push(recorded.value)
    items.push(recorded.value)
    characters += recorded.characters
    if (items.length > MOST_ITEMS) return { status: 'failed', error: `It gave more than ${MOST_ITEMS} items.` }
    if (page.length >= PAGE_ITEMS || characters >= PAGE_CHARACTERS) await flush(false)
  }
  if (items.length === page.length) return { status: 'completed', value: items }
  await flush(true)
  return { status: 'completed', value: items, onRecord: 'pages' }
}

type Read = { item: unknown } | { whole: unknown } | { error: string }

/** The values of the function, from a place on; the last is an error where one occurred. */
async function* valuesOf(open: () => unknown, from: number): AsyncGenerator<Read> {
  let index = 0
  try {
    const given = await open()
    if (!isIterable(given)) return yield asJson(given, 'whole')
    const { values, known } = iteratorFrom(given, from)
    index = from - known
    try {
      for (let step = await values.next(); !step.done; step = await values.next()) {
        const value = await step.value
        if (index++ >= from) yield asJson(value, 'item')
      }
    } finally {
      // The iterator may hold something open; nobody waits for its closing.
      Promise.resolve(values.return?.()).catch(() => undefined)
    }
  } catch (error) {
    yield { error: `The source failed at item ${index}: ${messageOf(error)}` }
  }
}

const isIterable = (given: unknown): boolean =>
  given !== null && typeof given === 'object' && (Symbol.iterator in given || Symbol.asyncIterator in given)

function asJson(given: unknown, as: 'item' | 'whole'): Read {
  const json = toJsonResult(given, MOST_BYTES)
  if (!json.ok) throw new Error(`it ${json.reason}.`)
  if ((json.rawBytes ?? 0) > MOST_BYTES) throw new Error(`it has more than ${MOST_BYTES} bytes.`)
  return as === 'item' ? { item: json.value } : { whole: json.value }
}

/** The pages of a source that are on record. */
export async function readPages(db: Db, flowRunId: string, taskId: string): Promise<unknown[]> {
  const { rows } = await db.query<{ items: unknown[] }>(
    `select data->'items' as items from flow_events
     where run_id = $1 and kind = 'source.page' and data->>'task_id' = $2 order by seq`,
    [flowRunId, taskId],
  )
  return rows.flatMap((row) => row.items)
}
