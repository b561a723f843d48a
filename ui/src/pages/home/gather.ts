// Words and sums of the home page.

import type { AgentOfHome, AmountsOfHome, HomeCount, TwoDays } from '../../../../src/kernel/home.ts'

/** "7", or "20+" if there may be more than were counted. */
export const counted = ({ count, has_more: hasMore }: HomeCount): string => `${count}${hasMore ? '+' : ''}`

/** How much of its tokens an agent has used, in percent. */
export const usedShare = ({ token_used: used, token_allocation: all }: TokensOf): number =>
  all === null || all === 0 ? 0 : Math.floor((100 * used) / all)

type TokensOf = Pick<AgentOfHome, 'token_used' | 'token_allocation'>

/** The sum over all projects. Null if no project has figures. */
export function sumDays(all: readonly (TwoDays | null)[]): TwoDays | null {
  const known = all.filter((each) => each !== null)
  if (known.length === 0) return null
  return { today: sum(known.map(({ today }) => today)), yesterday: sum(known.map(({ yesterday }) => yesterday)) }
}

/** A cost that is not known counts as nothing beside one that is. */
const sum = (amounts: readonly AmountsOfHome[]): AmountsOfHome => ({
  total_tokens: amounts.reduce((total, { total_tokens }) => total + total_tokens, 0),
  cost_usd: amounts.every(({ cost_usd }) => cost_usd === null)
    ? null
    : amounts.reduce((total, { cost_usd }) => total + (cost_usd ?? 0), 0),
})
