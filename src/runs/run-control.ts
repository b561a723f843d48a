/**
 * cancel: people said so · hand_back: this process stops, or needs itself for another run · lapse: the run may be
 * another process's by now. An interruption holds for the rest of the run; a deadline is about one call.
 */
export type Interruption = 'cancel' | 'hand_back' | 'lapse'

export interface CallSignal {
  signal: AbortSignal
  /** Why the signal fired, or null. */
  cause(): Interruption | 'deadline' | null
  /** The call is over: its timer and its listener are dropped. */
  end(): void
}

/** The interruptions of a run under way, and the signals by which its calls hear of them. */
export interface RunControl {
  interrupt(reason: Interruption): void
  interruption(): Interruption | null
  /** The run shall give its slot back at its next step; the call under way may end. */
  askToYield(): void
  isAskedToYield(): boolean
  /** The run shall pause, because its agent was stopped: a model call ends at once, tools may end by themselves. */
  askToStop(): void
  isAskedToStop(): boolean
  /** A signal for one model call or one round of tools, which fires at the deadline too. */
  signalFor(remainingMs: number | null, kind?: 'model' | 'tools'): CallSignal
}

/** Timers cannot be longer; for a later deadline the timer is set again. */
const LONGEST_TIMER_MS = 2_147_483_647

export function createRunControl(): RunControl {
  let interruption: Interruption | null = null
  let mustYield = false
  let mustStop = false
  const open = new Set<AbortController>()
  const modelCalls = new Set<AbortController>()
  return {
    interrupt: (reason) => {
      // A run that may be another's must not write, whatever else was asked.
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
        const onDeadline = (): void => {
          isLate = true
          controller.abort('deadline')
        }
        timer = setTimeout(onDeadline, Math.min(Math.max(0, remainingMs), LONGEST_TIMER_MS))
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
