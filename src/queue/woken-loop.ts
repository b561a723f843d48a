import type { Health } from './health.ts'

export interface WokenLoopOptions {
  /** One pass over everything that is due. */
  pass: () => Promise<void>
  /** The time until something is due; 0 if something is due now. */
  waitMs: () => number
  health: Health
}

export interface WokenLoop {
  wake(): void
  isStopped(): boolean
  /** Waits for the pass under way. */
  stop(): Promise<void>
}

/** Makes passes while something is due, never two at once, and sleeps until the next thing is due or it is woken. */
export function createWokenLoop({ pass, waitMs, health }: WokenLoopOptions): WokenLoop {
  let isStopped = false
  let running: Promise<void> | null = null
  let timer: NodeJS.Timeout | undefined

  function wake(): void {
    if (running || isStopped) return
    clearTimeout(timer)
    running = passWhileDue().finally(() => {
      running = null
      if (!isStopped) timer = setTimeout(wake, Math.max(1, waitMs())).unref()
    })
  }

  async function passWhileDue(): Promise<void> {
    while (!isStopped && waitMs() === 0) {
      try {
        await pass()
        health.succeeded()
      } catch (error) {
        health.failed(error)
      }
    }
  }

  return {
    wake,
    isStopped: () => isStopped,
    stop: async () => {
      isStopped = true
      clearTimeout(timer)
      await running
    },
  }
}
