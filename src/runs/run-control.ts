import { LONGEST_MS } from '../kernel/limits.ts'

/**
 * hand_back: this process stops, or needs all its slots for another run · lapse: the run may be another process's. An
 * interruption holds for the rest of the run; a deadline concerns one call.
 */
export type Interruption = 'cancel' | 'hand_back' | 'lapse'

export interface CallSignal {
  signal: AbortSignal
  cause(): Interruption | 'deadline' | null
  /** Must be called when the call is over: the timer and the listener are dropped. */
  end(): void
}

/** The interruptions of a run under way, and the signals that tell its calls of them. */
export interface RunControl {
  interrupt(reason: Interruption): void
  interruption(): Interruption | null
  /** Asks the run to give its slot back at its next step; the call under way may end. */
  askToYield(): void
  isAskedToYield(): boolean
  /** Asks the run to pause, because its agent was stopped: a model call ends at once, tools may end by themselves. */
  askToStop(): void
  isAskedToStop(): boolean
  /** A signal for one model call or one round of tools, which fires at the deadline too. */
  signalFor(remainingMs: number | null, kind?: 'model' | 'tools'): CallSignal
}

export function createRunControl(): RunControl {
  let interruption: Interruption | null = null
  let mustYield = false
  let mustStop = false
  const open = new Set<AbortController>()
  const modelCalls = new Set<AbortController>()
  return {
    interrupt: (reason) => {
      // A run that may be another process's must not write, whatever else was asked.
      if (interruption === null || reason === 'lapse') interruption = reason
      for (const controller of open) controller.abort(reason)
    },
    interruption: () => interruption,
    askToYield: () => {
      mustYield = true
    },
    isAskedToYield: () => mustYield || mustStop,
    askToStop: () => {
      mustStop = true
      for (const controller of modelCalls) controller.abort('stop')
    },
    isAskedToStop: () => mustStop,
    signalFor: (remainingMs, kind = 'tools') => {
      const controller = new AbortController()
      let isLate = false
      let timer: NodeJS.Timeout | null = null
      if (interruption) controller.abort(interruption)
      if (remainingMs !== null) {
        // Node's timers are shorter than some deadlines: then the timer is set again.
        const wait = (leftMs: number): void => {
          const ms = Math.min(Math.max(0, leftMs), LONGEST_MS)
          timer = setTimeout(() => {
            if (leftMs > ms) return wait(leftMs - ms)
            isLate = true
            controller.abort('deadline')
          }, ms)
        }
        wait(remainingMs)
      }
      open.add(controller)
      if (kind === 'model') modelCalls.add(controller)
      if (kind === 'model' && mustStop) controller.abort('stop')
      return {
        signal: controller.signal,
        cause: () => interruption ?? (isLate ? 'deadline' : null),
        end: () => {
          if (timer) clearTimeout(timer)
          open.delete(controller)
          modelCalls.delete(controller)
        },
      }
    },
  }
}
