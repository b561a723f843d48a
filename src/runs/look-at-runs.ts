import type { Db, PreparedSql } from '../db/pool.ts'
import { RUN_QUEUE } from '../journal/claim.ts'
import { OUTAGE_COLUMNS, type Outage } from '../journal/provider-outages.ts'
import { AWAITS_TOOLS } from '../journal/tool-waits.ts'
import { type AtHand, atHand, dueAtHand } from '../queue/queue-table.ts'
import { type ProjectSwitches, SWITCHES, type SwitchRow, switchesOf } from './project-switches.ts'

export interface RunsSeen extends AtHand {
  has_due: boolean
  /** True if some runs wait for a process that has their tools. */
  awaits_tools: boolean
  /** The cancelled runs among those that this process works on. This look is the fallback for a lost notification. */
  cancelled: string[]
  /** The runs whose agent was stopped, among those that this process works on. */
  stopped: string[]
  switches: ProjectSwitches
  /** The providers that are away or just coming back. */
  outages: Outage[]
}

// One statement instead of five: every process asks every second, and mostly there is nothing.
const LOOK: PreparedSql = {
  name: 'runs_at_hand',
  text: `select ${atHand(RUN_QUEUE)}, ${dueAtHand(RUN_QUEUE)}, ${AWAITS_TOOLS} as awaits_tools,
    told.*, (select jsonb_agg(s) from (${SWITCHES}) s) as switches,
    (select coalesce(jsonb_agg(o), '[]') from (select ${OUTAGE_COLUMNS} from provider_outages) o) as outages
    from (
      select coalesce(array_agg(id) filter (where cancel_requested_at is not null), '{}')::text[] as cancelled,
        coalesce(array_agg(id) filter (where stop_requested_at is not null), '{}')::text[] as stopped
      from agent_runs where owner = $1 and (cancel_requested_at is not null or stop_requested_at is not null)
    ) told`,
}

export async function lookAtRuns(db: Db, owner: string): Promise<RunsSeen> {
  const { rows } = await db.query<Omit<RunsSeen, 'switches'> & { switches: SwitchRow[] | null }>(LOOK, [owner])
  if (!rows[0]) throw new Error('a look at the runs returns one row')
  const { switches, ...seen } = rows[0]
  return { ...seen, switches: switchesOf(switches ?? []) }
}
