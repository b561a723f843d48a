// The parameters in the address of the list of runs, and the filter of the API that they stand for.
import { defined } from '../../../../src/kernel/defined.ts'
import type { RunFilter } from '../../api/queries.ts'

export interface RunSearch {
  q?: string | undefined
  period?: string | undefined
  status?: string | undefined
  agent?: string | undefined
  /** hidden: sub-runs and the runs of leaves are left out. */
  subruns?: string | undefined
}

const MINUTE_MS = 60_000

interface Period {
  label: string
  ms: number
}

export const PERIODS: Readonly<Record<string, Period>> = {
  hour: { label: 'Last hour', ms: 60 * MINUTE_MS },
  day: { label: 'Last day', ms: 24 * 60 * MINUTE_MS },
  week: { label: 'Last week', ms: 7 * 24 * 60 * MINUTE_MS },
}

/** No index serves an agent's runs without its sub-runs, so the API refuses that list. */
export const withoutSubRuns = ({ subruns, agent }: RunSearch): boolean => subruns === 'hidden' && agent === undefined

export function filterOf(search: RunSearch, now: number): RunFilter {
  const { q, status, agent, period } = search
  const chosen = period !== undefined && Object.hasOwn(PERIODS, period) ? PERIODS[period] : undefined
  return {
    status,
    agent_id: agent,
    q: q?.trim().slice(0, 200) || undefined,
    // A whole minute, so that a page that is opened again finds what it has read.
    created_after: chosen && new Date(Math.floor((now - chosen.ms) / MINUTE_MS) * MINUTE_MS).toISOString(),
    parent_run_id: withoutSubRuns(search) ? 'none' : undefined,
  }
}

/** The parameters that have a value. */
export const placeOf = (search: RunSearch) =>
  defined({
    q: search.q || undefined,
    period: search.period || undefined,
    status: search.status || undefined,
    agent: search.agent || undefined,
    subruns: search.subruns || undefined,
  })
