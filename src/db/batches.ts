import { explainFailure } from './failures.ts'

const MOST_AT_ONCE = 100

interface Waiting<Request, Outcome> {
  request: Request
  settle: (outcome: Outcome) => void
  fail: (error: unknown) => void
}

export interface BatchOptions<Request> {
  /** The most requests of a batch. */
  atOnce?: number
  /** For requests that may be large: a batch is no larger than `most`, unless it holds one request only. */
  size?: { of: (request: Request) => number; most: number }
  /**
   * Many writers that go on at once would all work and then all wait for the next commit, one processor idle at a time.
   * A batch of so many requests is settled in two halves, so that one half is written while the other works.
   */
  inTurnsFrom?: number
}

/**
 * Requests that come while others are being committed go out together, as one statement and one commit: under many
 * writers, each waits for one commit and none for the others' round trips.
 */
export function createBatches<Request, Outcome>(
  write: (requests: readonly Request[]) => Promise<Outcome[]>,
  { atOnce = MOST_AT_ONCE, size, inTurnsFrom = Number.POSITIVE_INFINITY }: BatchOptions<Request> = {},
): (request: Request) => Promise<Outcome> {
  const waiting: Waiting<Request, Outcome>[] = []
  let isWriting = false
  return (request) =>
    new Promise((settle, fail) => {
      waiting.push({ request, settle, fail })
      if (!isWriting) void writeAll()
    })

  async function writeAll(): Promise<void> {
    isWriting = true
    while (waiting.length > 0) {
      await new Promise(setImmediate)
      await writeBatch(waiting.splice(0, countOfNext()))
    }
    isWriting = false
  }

  function countOfNext(): number {
    if (!size) return atOnce
    let sum = 0
    const first = waiting.slice(0, atOnce)
    const tooMany = first.findIndex(({ request }, place) => {
      sum += size.of(request)
      return place > 0 && sum > size.most
    })
    return tooMany === -1 ? first.length : tooMany
  }

  async function writeBatch(batch: readonly Waiting<Request, Outcome>[]): Promise<void> {
    try {
      const outcomes = await write(batch.map(({ request }) => request))
      settleInTurns(batch, outcomes)
    } catch (error) {
      const isAlone = batch.length === 1
      if (isAlone || explainFailure(error)?.code === 'UNAVAILABLE') for (const { fail } of batch) fail(error)
      // One request that cannot be stored must not fail the others.
      else for (const one of batch) await writeBatch([one])
    }
  }
  function settleInTurns(batch: readonly Waiting<Request, Outcome>[], outcomes: readonly Outcome[]): void {
    const half = batch.length < inTurnsFrom ? batch.length : Math.ceil(batch.length / 2)
    settleAll(batch.slice(0, half), outcomes.slice(0, half))
    // The first half runs in the first turn; its requests are under way before the second half goes on.
    if (half < batch.length) {
      setImmediate(() => setImmediate(() => settleAll(batch.slice(half), outcomes.slice(half))))
    }
  }

  function settleAll(batch: readonly Waiting<Request, Outcome>[], outcomes: readonly Outcome[]): void {
    for (const [place, { settle, fail }] of batch.entries()) {
      const outcome = outcomes[place]
      if (outcome === undefined) fail(new Error('nothing is known of a change that was written'))
      else settle(outcome)
    }
  }
}
