import { after } from 'node:test'

const work: (() => Promise<unknown>)[] = []

/** A hook has no limit of its own, and one that hangs would not be named. */
const LIMIT_MS = 180_000

// `after` is registered while the file loads: inside a test it would belong to that test only.
after(
  async () => {
    for (const next of work.reverse()) await next()
  },
  { timeout: LIMIT_MS },
)

/** Runs `undo` when all tests of the file are over; the last one added runs first. */
export function atEnd(undo: () => Promise<unknown>): void {
  work.push(undo)
}
