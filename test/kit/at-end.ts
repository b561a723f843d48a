import { after } from 'node:test'

const work: (() => Promise<unknown>)[] = []

// `after` is registered while the file loads: inside a test it would belong to that test only.
after(async () => {
  for (const next of work.reverse()) await next()
})

/** Runs `undo` when all tests of the file are over; the last one added runs first. */
export function atEnd(undo: () => Promise<unknown>): void {
  work.push(undo)
}
