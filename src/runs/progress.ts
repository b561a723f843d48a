import { toJsonResult } from '../tools/json-result.ts'

export interface Progress {
  /** Never throws, never waits. */
  emit(progress: unknown): void
  /** Must be called when the call is over. Returns the newest progress if it is not written yet. */
  end(): Promise<{ value: unknown } | null>
}

const EVERY_MS = 250
const MOST_BYTES = 16_384

/** Journals a tool's progress, a few events per second, the newest always: a tool may report as often as it likes. */
export function createProgress(write: (value: unknown) => Promise<void>): Progress {
  let newest: { value: unknown } | null = null
  let timer: NodeJS.Timeout | null = null
  let writing: Promise<void> = Promise.resolve()
  let writtenAtMs = Number.NEGATIVE_INFINITY

  const flush = (): void => {
    timer = null
    const taken = take()
    if (!taken) return
    writtenAtMs = performance.now()
    writing = write(taken.value).catch(() => {}) // the call's own result tells a lost run
  }
  const take = (): { value: unknown } | null => {
    const taken = newest
    newest = null
    return taken && { value: bounded(taken.value) }
  }
  return {
    emit: (value) => {
      newest = { value }
      timer ??= setTimeout(flush, Math.max(0, writtenAtMs + EVERY_MS - performance.now()))
    },
    end: async () => {
      if (timer) clearTimeout(timer)
      await writing
      return take()
    },
  }
}

function bounded(value: unknown): unknown {
  const json = toJsonResult(value, MOST_BYTES)
  return json.ok ? json.value : { error: `The tool's progress ${json.reason}.` }
}
