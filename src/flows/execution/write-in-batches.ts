import { isUnavailable } from '../../db/failures.ts'
import { createTurns } from './turns.ts'

/** One statement writes this many entries at most. */
const MOST_ENTRIES = 1_000

interface WriteOptions<Item, Entry> {
  /** A batch with more characters than this is written at once. */
  mostCharacters: number
  /** Throws if the item cannot be written. */
  entryOf: (item: Item) => { entry: Entry; characters: number }
  /** Writes all entries or none. */
  write: (entries: readonly Entry[]) => Promise<void>
  /** Called with each item that cannot be written. */
  refuse: (item: Item, error: unknown) => void
}

/**
 * Writes items in batches; between two items other work has its turn. If a batch cannot be written, its items are
 * written one by one. Rejects only if the database cannot be reached.
 */
export async function writeInBatches<Item, Entry>(
  items: Iterable<Item>,
  { mostCharacters, entryOf, write, refuse }: WriteOptions<Item, Entry>,
): Promise<void> {
  const turn = createTurns()
  let batch: { item: Item; entry: Entry }[] = []
  let characters = 0
  const flush = async (): Promise<void> => {
    const full = batch
    batch = []
    characters = 0
    await writeEach(full)
  }
  const writeEach = async (full: typeof batch): Promise<void> => {
    const [first] = full
    if (!first) return
    try {
      const entries = full.map(({ entry }) => entry)
      await write(entries)
    } catch (error) {
      if (isUnavailable(error)) throw error
      if (full.length === 1) refuse(first.item, error)
      else for (const each of full) await writeEach([each])
    }
  }
  for (const item of items) {
    try {
      const { entry, characters: more } = entryOf(item)
      batch.push({ item, entry })
      characters += more
    } catch (error) {
      refuse(item, error)
    }
    if (characters > mostCharacters || batch.length >= MOST_ENTRIES) await flush()
    const pause = turn()
    if (pause) await pause
  }
  await flush()
}
