import { after } from 'node:test'

const work: (() => Promise<unknown>)[] = []

// Registered while the file loads: called inside a test, `after` would belong to that test alone.
after(async () => {
  for (const next of work.reverse()) await next()
})

/** Runs `undo` when all tests of the file are over; the last one added runs first. */
export function atEnd(undo: () => Promise<unknown>): void {
  work.push(undo)
}
