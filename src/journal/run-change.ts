/** What an append means for the run's row. Counts are added, everything else is set. */
export interface RunChange {
  steps?: number
  inputTokens?: number
  outputTokens?: number
  costUsd?: number
  /** Gives back what was reserved of the agent's allocation for the call that these tokens settle. */
  settled?: number
  set?: {
    status?: 'running' | 'completed' | 'failed' | 'cancelled' | 'paused'
    pause_reason?: string | null
    summary?: string | null
    error_code?: string | null
    error_message?: string | null
    usage_estimated?: true
    /** Why it has no slot; wakes by whoever settles that. */
    waits_for?: 'children' | 'human' | 'budget' | 'backoff' | 'halted' | null
    /**
     * Gives the slot back: the run has no owner any more. Where it was cancelled meanwhile, or more has happened to it
     * than `seen_signals`, it wants a slot again at once: the statement that parks decides, not who looked before.
     */
    release?: true
    seen_signals?: number
    /** With `release`: wants a slot (again), after so many milliseconds. */
    ready_in_ms?: number
    /** The run has ended: completed_at and duration follow. */
    ended?: true
  }
}
