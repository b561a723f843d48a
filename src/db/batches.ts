import { explainFailure } from './failures.ts'

const MOST_AT_ONCE = 100

interface Waiting<Request, Outcome> {
  request: Request
  settle: (outcome: Outcome) => void
  fail: (error: unknown) => void
}

/**
 * Requests that come while others are being committed go out together, as one statement and one commit: under many
 * writers, each waits for one commit and none for the others' round trips.
 */
export function createBatches<Request, Outcome>(
  write: (requests: readonly Request[]) => Promise<Outcome[]>,
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
      await writeBatch(waiting.splice(0, MOST_AT_ONCE))
    }
    isWriting = false
  }

  async function writeBatch(batch: readonly Waiting<Request, Outcome>[]): Promise<void> {
    try {
      const outcomes = await write(batch.map(({ request }) => request))
      for (const [place, { settle, fail }] of batch.entries()) {
        const outcome = outcomes[place]
        if (outcome === undefined) fail(new Error('nothing is known of a change that was written'))
        else settle(outcome)
      }
    } catch (error) {
      const isAlone = batch.length === 1
      if (isAlone || explainFailure(error)?.code === 'UNAVAILABLE') for (const { fail } of batch) fail(error)
      // One request that cannot be stored must not fail the others.
      else for (const one of batch) await writeBatch([one])
    }
  }
}
