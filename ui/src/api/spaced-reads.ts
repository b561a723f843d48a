export interface SpacedReads {
  /** Something has changed: a read follows. */
  note(): void
  stop(): void
}

interface SpacedOptions {
  /** Changes within this time cause one read. */
  afterMs: number
  /** The least time between two reads. */
  everyMs: number
  now?: () => number
}

/** Reads after changes, but not more often than that. The last change is always followed by a read. */
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
    stop: () => clearTimeout(timer),
  }
}
