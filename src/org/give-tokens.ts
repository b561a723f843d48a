import { recordAudit } from '../audit/record.ts'
import type { Db } from '../db/pool.ts'
import type { Log } from '../kernel/log.ts'
import { agentActor } from '../kernel/principal.ts'
import { allocationChanged, MOST_TOKENS } from './budget.ts'
import { logOnCommit } from './log-on-commit.ts'

export interface TokenGift {
  projectId: string
  from: string
  to: string
  tokens: number
  runId: string
}

/** Moves tokens from a senior to its subordinate. Returns null, or the reason why the tokens cannot be moved. */
export async function giveTokens(
  tx: Db,
  log: Log,
  { projectId, from, to, tokens, runId }: TokenGift,
): Promise<string | null> {
  const { rows } = await tx.query<{ id: string; allocation: number | null; is_left: number | null }>(
    `select a.id, a.token_allocation as allocation, a.token_allocation - coalesce(t.used, 0) - coalesce(t.reserved, 0) as is_left
     from agents a left join agent_tokens t on t.agent_id = a.id
     where a.id = any($1) and a.project_id = $2 and a.deleted_at is null order by a.id for no key update of a`,
    [[from, to], projectId],
  )
  const giver = rows.find((row) => row.id === from)
  const taker = rows.find((row) => row.id === to)
  if (!giver || !taker) return 'There is no such agent.'
  if (taker.allocation === null) return 'This agent has no token limit.'
  if (taker.allocation + tokens > MOST_TOKENS) return `An agent has ${MOST_TOKENS} tokens at most.`
  if (giver.is_left !== null && giver.is_left < tokens)
    return `You have ${Math.max(0, giver.is_left)} tokens left to give.`
  await tx.query(
    `update agents set token_allocation = token_allocation + case when id = $1 then -$3::bigint else $3::bigint end,
       updated_at = muster.now() where id in ($1, $2) and token_allocation is not null`,
    [from, to, tokens],
  )
  logOnCommit(
    tx,
    log,
    'budget.added',
    { project_id: projectId, agent_id: to, run_id: runId },
    { tokens, from_agent_id: from },
  )
  await allocationChanged(tx, log, to, runId)
  await recordAudit(tx, {
    action: 'agent.budget',
    actor: agentActor(from),
    projectId,
    targetType: 'agent',
    targetId: to,
    details: { add: tokens, run_id: runId },
  })
  return null
}
