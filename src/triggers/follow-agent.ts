// Starts agents by a change in the graph, by the clock or by a webhook. Triggers are stored in the tables in which they
// are matched (reaction rules, schedules), in the transaction of every write of the agent.
import type { Db } from '../db/pool.ts'
import type { Agent } from '../kernel/agent.ts'
import { writeReactionRules } from './reaction-rules.ts'
import { writeSchedule } from './schedules.ts'

/** The change takes effect with the commit, in every process. */
export async function followAgent(tx: Db, agent: Agent): Promise<void> {
  await writeReactionRules(tx, agent)
  await writeSchedule(tx, agent)
}
