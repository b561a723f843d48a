const AMBER = 90
const RED = 95

interface BudgetTone {
  /** In percent; 0 without a limit. */
  share: number
  tone: 'running' | 'blocked' | 'failed'
  /** The meaning of the colour, for those who do not see it. */
  word: string
}

/** Amber at 90 % of the tokens, red at 95 %, as the senior of the agent is warned. */
export function budgetTone(used: number, allocation: number | null): BudgetTone {
  if (allocation === null) return { share: 0, tone: 'running', word: '' }
  const share = allocation === 0 ? 100 : (100 * used) / allocation
  if (share >= 100)
    return { share, tone: 'failed', word: 'The tokens are used up. The agent pauses until it has more.' }
  if (share >= RED) return { share, tone: 'failed', word: 'The tokens are almost used up.' }
  if (share >= AMBER) return { share, tone: 'blocked', word: 'The tokens run short.' }
  return { share, tone: 'running', word: '' }
}
