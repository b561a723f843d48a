/** The change of the run's row that an append brings. Counts are added, everything else is set. */
export interface RunChange {
  steps?: number
  inputTokens?: number
  outputTokens?: number
  costUsd?: number
  /** The reserved tokens that go back to the agent's allocation, because this append settles their call. */
  settled?: number
  set?: {
    status?: 'running' | 'completed' | 'failed' | 'cancelled' | 'paused'
    pause_reason?: string | null
    summary?: string | null
    error_code?: string | null
    error_message?: string | null
    usage_estimated?: true
    model?: { provider: string; name: string }
    /** The reason why the run has no slot. The run is woken when the reason is gone. */
    waits_for?: 'children' | 'human' | 'budget' | 'allocation' | 'month' | 'backoff' | 'halted' | 'provider' | null
    /** With `release`: the awaited thing, in the words of `Run.waiting_for`. */
    waiting_for?: string
    /** With `release`: the provider's own words. */
    wait_message?: string
    /**
     * Gives the slot back. If the run was cancelled meanwhile, or more has happened to it than `seen_signals`, it is
     * ready again at once: the statement that parks decides, not an earlier look.
     */
    release?: true
    seen_signals?: number
    /** With `release`: the run is ready again after this time. */
    ready_in_ms?: number
    /** The run has ended: completed_at and duration follow. */
    ended?: true
  }
}
