import { after } from 'node:test'

const work: (() => Promise<unknown>)[] = []

/** Runs when the file's tests are over, what was added last first. Call it at the top level of a file, not in a hook. */
export function atEnd(undo: () => Promise<unknown>): void {
  if (work.length === 0) {
    after(async () => {
      for (const next of work.reverse()) await next()
    })
  }
  work.push(undo)
}
