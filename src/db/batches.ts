import { asManyAsFit } from '../kernel/as-many-as-fit.ts'
import { isUnavailable } from './failures.ts'

const MOST_AT_ONCE = 100

interface Waiting<Request, Outcome> {
  request: Request
  settle: (outcome: Outcome) => void
  fail: (error: unknown) => void
}

export interface BatchOptions<Request> {
  atOnce?: number
  /** For requests that may be large: a batch is no larger than `most`, unless it holds one request only. */
  size?: { of: (request: Request) => number; most: number }
  /**
   * A batch of at least this many requests is settled in halves: one half is written while the other half computes.
   * Otherwise all writers would compute and then all wait, so that client and server are idle in turn.
   */
  inTurnsFrom?: number
}

/**
 * Requests that arrive while others are being committed are sent together, as one statement and one commit: each writer
 * waits for one commit, and not for the round trips of the others.
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
    return asManyAsFit(waiting.slice(0, atOnce), ({ request }) => size.of(request), size.most).length
  }

  async function writeBatch(batch: readonly Waiting<Request, Outcome>[]): Promise<void> {
    try {
      const outcomes = await write(batch.map(({ request }) => request))
      settleInTurns(batch, outcomes)
    } catch (error) {
      const isAlone = batch.length === 1
      if (isAlone || isUnavailable(error)) for (const { fail } of batch) fail(error)
      // One request that cannot be stored must not fail the others.
      else for (const one of batch) await writeBatch([one])
    }
  }
  function settleInTurns(batch: readonly Waiting<Request, Outcome>[], outcomes: readonly Outcome[]): void {
    const half = batch.length < inTurnsFrom ? batch.length : Math.ceil(batch.length / 2)
    settleAll(batch.slice(0, half), outcomes.slice(0, half))
    // The first half runs in the first turn; its requests are under way before the second half continues.
    if (half < batch.length) {
      setImmediate(() => setImmediate(() => settleAll(batch.slice(half), outcomes.slice(half))))
    }
  }

  function settleAll(batch: readonly Waiting<Request, Outcome>[], outcomes: readonly Outcome[]): void {
    for (const [place, { settle, fail }] of batch.entries()) {
      const outcome = outcomes[place]
      if (outcome === undefined) fail(new Error('the batch has no outcome for this request'))
      else settle(outcome)
    }
  }
}
