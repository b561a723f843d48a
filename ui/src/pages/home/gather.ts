// Chooses the rows of the home page from the reads of each project.
import type { Agent } from '../../../../src/kernel/agent.ts'
import type { FlowRun } from '../../../../src/kernel/flow-run.ts'
import type { Run } from '../../../../src/kernel/run.ts'
import type { Page } from '../../api/client.ts'
import type { Spent, TwoDays } from '../../api/home.ts'

/** A run that somebody started: no sub-run, no leaf of a flow. Those are shown by the work above them. */
export const isOnTop = (run: Pick<Run, 'parent_run_id' | 'trigger'>): boolean =>
  run.parent_run_id === null && run.trigger.type !== 'flow'

/** Without the runs of agents that are flows, if their flow runs are listed. */
export function withoutShownByFlows<R extends Pick<Run, 'id'>>(
  runs: readonly R[],
  flows: readonly Pick<FlowRun, 'parent_run_id'>[],
): R[] {
  const shown = new Set(flows.map(({ parent_run_id }) => parent_run_id))
  return runs.filter(({ id }) => !shown.has(id))
}

/** Pauses that end a run until somebody resumes it. Waits for an answer are in the inbox. */
const STOPS: ReadonlySet<string | null> = new Set(['step_limit', 'timeout', 'context', 'budget', 'unavailable'])

/** True: the run failed or stopped after the instant. */
export const stoppedSince = (
  run: Pick<Run, 'status' | 'pause_reason' | 'completed_at' | 'created_at'>,
  since: number,
): boolean =>
  (run.status === 'failed' || (run.status === 'paused' && STOPS.has(run.pause_reason))) &&
  Date.parse(run.completed_at ?? run.created_at) >= since

export const endedSince = ({ completed_at }: Pick<FlowRun, 'completed_at'>, since: number): boolean =>
  completed_at !== null && Date.parse(completed_at) >= since

type AnyPage = Pick<Page<unknown>, 'next_cursor'> | undefined

/** True: one of the lists goes on after the page that was read. */
export const goesOn = (...pages: AnyPage[]): boolean => pages.some((page) => typeof page?.next_cursor === 'string')

/**
 * True: one of the lists goes on with items that began after the instant. Every old project has more failures than a
 * page, so a list that goes on with older items only is complete here.
 */
export const goesOnSince = (since: number, ...pages: (Page<Pick<Run, 'created_at'>> | undefined)[]): boolean =>
  pages.some((page) => goesOn(page) && Date.parse(page?.items.at(-1)?.created_at ?? '') >= since)

/** "7", or "20+" if there may be more than were read. */
export const counted = (amount: number, hasMore: boolean): string => `${amount}${hasMore ? '+' : ''}`

/** How much of its tokens an agent has used, in percent. */
export const usedShare = ({ token_used: used, token_allocation: all }: TokensOf): number =>
  all === null || all === 0 ? 0 : Math.floor((100 * used) / all)

type TokensOf = Pick<Agent, 'token_used' | 'token_allocation'>

/** How far a flow is, from 0 to 100. */
export function percentOf({ total, completed, failed, skipped }: FlowRun['progress']): number {
  return total === 0 ? 0 : Math.floor(((completed + failed + skipped) / total) * 100)
}

/** The sum over all projects. Null if no project has figures. */
export function sumDays(all: readonly (TwoDays | null | undefined)[]): TwoDays | null {
  const known = all.filter((each) => each !== null && each !== undefined)
  if (known.length === 0) return null
  return { today: sum(known.map(({ today }) => today)), yesterday: sum(known.map(({ yesterday }) => yesterday)) }
}

/** A cost that is not known counts as nothing beside one that is. */
const sum = (amounts: readonly Spent[]): Spent => ({
  total_tokens: amounts.reduce((total, { total_tokens }) => total + total_tokens, 0),
  cost_usd: amounts.every(({ cost_usd }) => cost_usd === null)
    ? null
    : amounts.reduce((total, { cost_usd }) => total + (cost_usd ?? 0), 0),
})
