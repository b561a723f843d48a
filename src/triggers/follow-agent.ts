// Makes agents run without being asked, by a change in the graph, the clock, a webhook. An agent's triggers are kept
// where they are matched (reaction rules, schedules) and follow every write of the agent in its own transaction.
import type { Db } from '../db/pool.ts'
import type { Agent } from '../kernel/agent.ts'
import { writeReactionRules } from './reaction-rules.ts'
import { writeSchedule } from './schedules.ts'

/** From the commit on, in every process. */
export async function followAgent(tx: Db, agent: Agent): Promise<void> {
  await writeReactionRules(tx, agent)
  await writeSchedule(tx, agent)
}
