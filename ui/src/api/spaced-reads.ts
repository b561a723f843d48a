export interface SpacedReads {
  /** Something has changed: a read follows. */
  note(): void
  /** No read follows what was noted so far. */
  stop(): void
}

interface SpacedOptions {
  /** Changes within this time cause one read. */
  afterMs: number
  /** The least time between two reads. */
  everyMs: number
  now?: () => number
}

/** Reads after changes, with the given time between two reads. The last change is always followed by a read. */
export function createSpacedReads(
  read: () => void,
  { afterMs, everyMs, now = () => performance.now() }: SpacedOptions,
): SpacedReads {
  let lastAt = Number.NEGATIVE_INFINITY
  let timer: ReturnType<typeof setTimeout> | undefined
  const begin = (): void => {
    timer = undefined
    lastAt = now()
    read()
  }
  return {
    note: () => {
      timer ??= setTimeout(begin, Math.max(afterMs, lastAt + everyMs - now()))
    },
    stop: () => {
      clearTimeout(timer)
      timer = undefined
    },
  }
}
