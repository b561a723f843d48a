import { messageOf } from '../tools/execute-tool.ts'

export type Hooked =
  | { kind: 'returned'; value: unknown }
  /** `message` completes "middleware[0].beforeModel …". */
  | { kind: 'failed'; message: string; thrown?: unknown }
  | { kind: 'aborted' }

/**
 * Calls a hook. Never throws, and never waits for a hook that hangs: when the signal fires or its time is up, the hook
 * is left behind, and anything it does later is ignored.
 */
export async function callHook(
  hook: (signal: AbortSignal) => unknown,
  { signal, timeoutMs }: { signal: AbortSignal; timeoutMs: number },
): Promise<Hooked> {
  if (signal.aborted) return { kind: 'aborted' }
  const stop = new AbortController()
  const over = Promise.withResolvers<Hooked>()
  const onAbort = (): void => {
    over.resolve({ kind: 'aborted' })
    stop.abort(signal.reason)
  }
  const onTimeout = (): void => {
    const message = `did not finish within ${timeoutMs} ms.`
    over.resolve({ kind: 'failed', message })
    stop.abort(new DOMException(`The hook ${message}`, 'TimeoutError'))
  }
  signal.addEventListener('abort', onAbort, { once: true })
  const timer = setTimeout(onTimeout, timeoutMs)
  try {
    return await Promise.race([over.promise, settle(hook, stop.signal)])
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', onAbort)
  }
}

/** Never rejects, so a hook that fails after it was left behind is no unhandled rejection. */
async function settle(hook: (signal: AbortSignal) => unknown, signal: AbortSignal): Promise<Hooked> {
  try {
    return { kind: 'returned', value: await hook(signal) }
  } catch (thrown) {
    return { kind: 'failed', message: `threw: ${messageOf(thrown, '')}`, thrown }
  }
}
