import type { Db, PreparedSql } from '../../db/pool.ts'
import { type AtHand, atHand, dueAtHand } from '../../queue/queue-table.ts'
import { FLOW_QUEUE } from './claim.ts'
import { LEAF_QUEUE } from './handouts.ts'

export interface FlowsSeen {
  flows: AtHand & { has_due: boolean }
  leaves: AtHand
}

// One statement instead of eight: every process asks every second, and mostly finds nothing.
const LOOK: PreparedSql = {
  name: 'flows_at_hand',
  text: `select to_jsonb(f) as flows, to_jsonb(l) as leaves
    from (select ${atHand(FLOW_QUEUE)}, ${dueAtHand(FLOW_QUEUE)}) f,
      (select ${atHand(LEAF_QUEUE)}) l`,
}

export async function lookAtFlows(db: Db): Promise<FlowsSeen> {
  const { rows } = await db.query<FlowsSeen>(LOOK)
  if (!rows[0]) throw new Error('a look at the flows answers one row')
  return rows[0]
}
