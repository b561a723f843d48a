import type { Db } from '../db/pool.ts'
import type { AgentRights } from '../kernel/rights.ts'

/** The present rights of these agents. A request that changes these rights waits until the transaction ends. */
export async function agentRights(tx: Db, agentIds: readonly string[]): Promise<Map<string, AgentRights>> {
  const { rows } = await tx.query<AgentRights & { id: string }>(
    `select id, capabilities, execution_mode, require_approval from agents
     where id = any($1) and deleted_at is null order by id for share`,
    [[...new Set(agentIds)]],
  )
  return new Map(rows.map((row) => [row.id, row]))
}
