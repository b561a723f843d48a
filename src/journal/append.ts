// Everything that happens to a run is appended here, for all runs of the process at once: while one batch is being
// committed the next one collects, and goes out as a single statement (group commit). The statement locks its run rows
// in id order, takes seq from the row, checks the fence and writes the row's projection, so journal and row never differ.
import { explainFailure } from '../db/failures.ts'
import type { Db } from '../db/pool.ts'
import { newId } from '../kernel/id.ts'
import type { Log } from '../kernel/log.ts'
import { appendBatch, findWritten, type Written } from './append-batch.ts'
import { cleanJson } from './clean-json.ts'
import type { RunChange } from './run-change.ts'

export interface NewEvent {
  kind: string
  data: Readonly<Record<string, unknown>>
}

export interface Append {
  runId: string
  /** The owner's fence; null for facts from outside (a cancel, an answer), which never change ownership. */
  fence: number | null
  events: readonly NewEvent[]
  /** What the events mean for the run's row. */
  change?: RunChange
}

/** fenced: somebody else owns the run now, and nothing was written. gone: there is no such run. */
export type Appended = { status: 'written'; firstSeq: number } | { status: 'fenced' } | { status: 'gone' }

export interface Journal {
  /** Resolves when the events are committed. Appends of one run keep their order. */
  append(entry: Append): Promise<Appended>
  /** Resolves when everything that was handed in is settled. */
  drain(): Promise<void>
}

export interface Prepared {
  runId: string
  fence: number | null
  events: readonly { id: string; kind: string; data: string }[]
  change: RunChange | undefined
}

interface Waiting {
  entry: Prepared
  settle: (appended: Appended) => void
  fail: (error: unknown) => void
}

const MOST_ENTRIES = 500
const MOST_CHARACTERS = 8_000_000
const RETRY_FOR_MS = 20_000

export function createJournal({ db, log, now = Date.now }: { db: Db; log: Log; now?: () => number }): Journal {
  let waiting: Waiting[] = []
  let flushing: Promise<void> | null = null

  return {
    append: (append) =>
      new Promise((settle, fail) => {
        waiting.push({ entry: prepare(append), settle, fail })
        flushing ??= flushAll()
      }),
    drain: async () => {
      while (flushing) await flushing
    },
  }

  async function flushAll(): Promise<void> {
    // One turn of the loop lets everything that is ready now join the first batch.
    await new Promise(setImmediate)
    while (waiting.length > 0) {
      const { batch, rest } = takeBatch(waiting)
      waiting = rest
      await flush(batch)
    }
    flushing = null
  }

  async function flush(batch: Waiting[]): Promise<void> {
    try {
      settleAll(batch, await writeWithRetry(batch))
    } catch (error) {
      if (batch.length === 1) {
        batch[0]?.fail(error)
        return
      }
      // One entry that cannot be stored must not take its neighbours with it.
      const half = Math.ceil(batch.length / 2)
      await flush(batch.slice(0, half))
      await flush(batch.slice(half))
    }
  }

  async function writeWithRetry(batch: Waiting[]): Promise<Map<string, Written>> {
    const entries = batch.map((one) => one.entry)
    const giveUpAt = now() + RETRY_FOR_MS
    for (let waitMs = 50, attempt = 1; ; waitMs = Math.min(waitMs * 2, 1_000), attempt++) {
      try {
        // After a cut nobody knows whether the batch was committed: what it wrote is found by its ids.
        const found = attempt === 1 ? new Map<string, Written>() : await findWritten(db, entries)
        const open = entries.filter((entry) => !found.has(entry.runId))
        return open.length === 0 ? found : new Map([...found, ...(await appendBatch(db, open))])
      } catch (error) {
        if (explainFailure(error)?.code !== 'UNAVAILABLE' || now() > giveUpAt) throw error
        log.warn({ err: error, entries: entries.length }, 'the journal could not be written; trying again')
        await new Promise((resolve) => setTimeout(resolve, waitMs))
      }
    }
  }
}

/** The oldest entries that fit one statement; a run's second entry waits for the next, so that its order is kept. */
function takeBatch(waiting: Waiting[]): { batch: Waiting[]; rest: Waiting[] } {
  const runs = new Set<string>()
  const batch: Waiting[] = []
  const rest: Waiting[] = []
  let characters = 0
  for (const one of waiting) {
    const fits = batch.length < MOST_ENTRIES && characters < MOST_CHARACTERS && !runs.has(one.entry.runId)
    ;(fits ? batch : rest).push(one)
    runs.add(one.entry.runId)
    if (fits) for (const event of one.entry.events) characters += event.data.length
  }
  return { batch, rest }
}

function settleAll(batch: readonly Waiting[], written: Map<string, Written>): void {
  for (const { entry, settle } of batch) {
    const answer = written.get(entry.runId)
    if (!answer) settle({ status: 'gone' })
    else if (answer.firstSeq === null) settle({ status: 'fenced' })
    else settle({ status: 'written', firstSeq: answer.firstSeq })
  }
}

function prepare({ runId, fence, events, change }: Append): Prepared {
  return {
    runId,
    fence,
    events: events.map(({ kind, data }) => ({ id: newId(), kind, data: cleanJson(data) })),
    change,
  }
}
