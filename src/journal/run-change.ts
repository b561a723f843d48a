/** What an append means for the run's row. Counts are added, everything else is set. */
export interface RunChange {
  steps?: number
  inputTokens?: number
  outputTokens?: number
  costUsd?: number
  set?: {
    status?: 'running' | 'completed' | 'failed' | 'cancelled' | 'paused'
    pause_reason?: string | null
    summary?: string | null
    error_code?: string | null
    error_message?: string | null
    usage_estimated?: true
    waits_for?: object | null
    /** Gives the slot back: the run has no owner any more. */
    release?: true
    /** Wants a slot (again). */
    ready?: true
    /** The run has ended: completed_at and duration follow. */
    ended?: true
    cancel_requested?: true
  }
}
