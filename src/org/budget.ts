// The tokens of agents: warnings to the senior, the pause when an agent has none left, and its return to work.
import { recordAudit } from '../audit/record.ts'
import type { Db } from '../db/pool.ts'
import { type CrossedMark, crossMarks, holdAllocation, resetMark } from '../journal/reserve.ts'
import { conflict, notFound } from '../kernel/errors.ts'
import { idFrom } from '../kernel/id.ts'
import type { Log } from '../kernel/log.ts'
import type { Actor } from '../kernel/principal.ts'
import { makeDue } from '../tasks/task-queue.ts'
import { tellDelegators } from './delegators.ts'
import { closeRequests, escalate } from './escalate.ts'
import { logOnCommit } from './log-on-commit.ts'
import { sendMessages } from './messages.ts'
import { changeStatus } from './statuses.ts'
import { resultText } from './task-text.ts'
import type { WorkTask } from './work-row.ts'

interface SpendingAgent {
  name: string
  project_id: string
  senior_id: string | null
  exhaustions: number
  allocation: number
}

const SPENDING = `
  select a.name, a.project_id, s.id as senior_id, coalesce(t.exhaustions, 0) as exhaustions,
    greatest(a.token_allocation, 1) as allocation
  from agents a left join agent_tokens t on t.agent_id = a.id
  left join agents s on s.id = a.senior_id and s.deleted_at is null where a.id = $1 and a.deleted_at is null`

/** Called in the transaction that noted the marks (90, 95 or 100 percent of the allocation). */
export async function marksCrossed(tx: Db, log: Log, agentId: string, marks: readonly CrossedMark[]): Promise<void> {
  if (marks.length === 0) return
  const { rows } = await tx.query<SpendingAgent>(SPENDING, [agentId])
  const agent = rows[0]
  if (!agent) return
  const isExhausted = marks.some(({ mark }) => mark >= 100)
  // The marks are in ascending order; the highest is logged.
  logOnCommit(tx, log, 'budget.marked', { project_id: agent.project_id, agent_id: agentId }, { ...marks.at(-1) })
  for (const { mark, used, allocation } of marks) {
    if (agent.senior_id === null) break
    const spent = `${used} of ${allocation} tokens`
    const share = `${100 * used > mark * allocation ? 'over ' : ''}${mark} %`
    const body = `${agent.name} has used ${mark >= 100 ? 'up its tokens' : share} (${spent}).`
    const { project_id: projectId, senior_id: to, exhaustions } = agent
    const key = `budget ${agentId} ${allocation} ${mark} ${exhaustions}`
    await sendMessages(tx, [{ projectId, from: agentId, to, kind: 'budget', body, key }], log)
  }
  if (isExhausted) await exhausted(tx, log, agentId, agent)
}

/** Called when a run of the agent was refused tokens. The agent pauses, unless it was given tokens meanwhile. */
export async function noteExhausted(tx: Db, log: Log, agentId: string): Promise<void> {
  await holdAllocation(tx, agentId)
  await marksCrossed(tx, log, agentId, await crossMarks(tx, agentId))
  const { rows } = await tx.query<SpendingAgent>(
    `${SPENDING} and a.status <> 'paused' and coalesce(t.used, 0) >= a.token_allocation`,
    [agentId],
  )
  if (rows[0]) await exhausted(tx, log, agentId, rows[0])
}

const exhaustedTaskId = (agentId: string, count: number): string => idFrom(`exhausted ${agentId} ${count}`)
/** The id of the task that asks people, after a senior gave no tokens. */
const secondTaskId = (agentId: string, count: number): string => idFrom(`exhausted ${agentId} ${count} people`)

async function exhausted(tx: Db, log: Log, agentId: string, agent: SpendingAgent): Promise<void> {
  logOnCommit(tx, log, 'budget.exhausted', { project_id: agent.project_id, agent_id: agentId })
  await changeStatus(tx, log, { agentId, event: 'exhausted', why: 'it has used up its tokens.' })
  await tellDelegators(tx, log, [agentId], 'has used up its tokens')
  if (await isOpen(tx, exhaustedTaskId(agentId, agent.exhaustions))) return
  const count = agent.exhaustions + 1
  await tx.query(
    `insert into agent_tokens (agent_id, exhaustions) values ($1, $2)
     on conflict (agent_id) do update set exhaustions = excluded.exhaustions`,
    [agentId, count],
  )
  await askForTokens(tx, log, { id: exhaustedTaskId(agentId, count), agentId, agent, to: agent.senior_id })
}

async function askForTokens(
  tx: Db,
  log: Log,
  {
    id,
    agentId,
    agent,
    to,
    said,
  }: { id: string; agentId: string; agent: SpendingAgent; to: string | null; said?: string },
): Promise<void> {
  const { name, project_id: projectId, allocation } = agent
  const howTo =
    to === null
      ? `Give it some with POST /api/projects/${projectId}/agents/${agentId}/budget {"add": ${allocation}}, which completes this task.`
      : `Give it some with budget_add ${JSON.stringify({ agent: name, tokens: allocation })}, or say why you do not.`
  await escalate(tx, log, {
    id,
    projectId,
    to,
    from: agentId,
    title: `Agent ${name} has used up its tokens`,
    description: [
      `${name} is paused until it is given tokens; its work then goes on from the same point.`,
      howTo,
      ...(said === undefined ? [] : [`Its senior was asked first, gave none, and said: ${said}`]),
    ].join('\n\n'),
    priority: 'high',
    metadata: { exhaustedAgentId: agentId },
    helpsAgentId: agentId,
  })
}

/**
 * Called when a task that asked for tokens was completed. If the agent still has none, a person is refused, and after a
 * senior agent people are asked.
 */
export async function requestResolved(tx: Db, log: Log, task: WorkTask): Promise<void> {
  const { helps_agent_id: agentId } = task
  if (agentId === null || task.status !== 'completed') return
  const { rows } = await tx.query<SpendingAgent>(
    `${SPENDING} and a.status = 'paused' and coalesce(t.used, 0) >= a.token_allocation`,
    [agentId],
  )
  const agent = rows[0]
  if (!agent) return
  if (task.assigned_to === null) {
    throw conflict(
      `${agent.name} has no tokens yet. Give it some with POST /agents/${agentId}/budget, which completes this task; or cancel the task, and the agent stays paused.`,
    )
  }
  const id = secondTaskId(agentId, agent.exhaustions)
  await askForTokens(tx, log, { id, agentId, agent, to: null, said: resultText(task.result) })
}

/** Cancels the open requests for tokens for this agent. */
export async function withdrawRequest(tx: Db, log: Log, agentId: string): Promise<void> {
  const { rows } = await tx.query<{ exhaustions: number }>('select exhaustions from agent_tokens where agent_id = $1', [
    agentId,
  ])
  const requests = rows[0] ? requestsOf(agentId, rows[0].exhaustions) : []
  await closeRequests(tx, log, requests, { status: 'cancelled', result: null, byRun: null })
}

const requestsOf = (agentId: string, count: number): string[] => [
  exhaustedTaskId(agentId, count),
  secondTaskId(agentId, count),
]

async function isBlocked(tx: Db, agentId: string): Promise<boolean> {
  const { rowCount } = await tx.query(`select from tasks where assigned_to = $1 and status = 'blocked' limit 1`, [
    agentId,
  ])
  return rowCount === 1
}

async function isOpen(tx: Db, taskId: string): Promise<boolean> {
  const { rowCount } = await tx.query(`select from tasks where id = $1 and completed_at is null`, [taskId])
  return rowCount === 1
}

/**
 * Called in the transaction that changed an allocation. If the agent has tokens again, its work goes on, and the task
 * that asked for tokens is completed. `byRun` is the run that gave the tokens, if a run did.
 */
export async function allocationChanged(tx: Db, log: Log, agentId: string, byRun: string | null = null): Promise<void> {
  await resetMark(tx, agentId)
  const { rows } = await tx.query<{ project_id: string; exhaustions: number | null }>(
    `select a.project_id, t.exhaustions from agents a left join agent_tokens t on t.agent_id = a.id
     where a.id = $1 and a.deleted_at is null and (a.token_allocation is null or coalesce(t.used, 0) < a.token_allocation)`,
    [agentId],
  )
  const agent = rows[0]
  if (!agent) return
  await changeStatus(tx, log, { agentId, event: 'funded', why: 'it has tokens again.' })
  if (await isBlocked(tx, agentId)) {
    await changeStatus(tx, log, { agentId, event: 'blocked', why: 'it was stuck before it ran out of tokens.' })
  }
  const requests = requestsOf(agentId, agent.exhaustions ?? 0)
  await closeRequests(tx, log, requests, { status: 'completed', result: 'Tokens were added.', byRun })
  await makeDue(tx, agent.project_id, [agentId])
}

/** JavaScript numbers above this are not exact. */
export const MOST_TOKENS = Number.MAX_SAFE_INTEGER

export interface TopUp {
  projectId: string
  agentId: string
  add: number
  actor: Actor
}

export async function addTokens(tx: Db, log: Log, { projectId, agentId, add, actor }: TopUp): Promise<void> {
  const { rows } = await tx.query<{ token_allocation: number | null }>(
    `select token_allocation from agents where id = $1 and project_id = $2 and deleted_at is null for no key update`,
    [agentId, projectId],
  )
  if (!rows[0]) throw notFound('agent')
  if (rows[0].token_allocation === null)
    throw conflict(
      'The agent has no token limit, so it needs no tokens. PATCH its token_allocation to give it a limit.',
    )
  if (rows[0].token_allocation + add > MOST_TOKENS) throw conflict(`An agent has ${MOST_TOKENS} tokens at most.`)
  await tx.query(
    'update agents set token_allocation = token_allocation + $2, updated_at = muster.now() where id = $1',
    [agentId, add],
  )
  logOnCommit(tx, log, 'budget.added', { project_id: projectId, agent_id: agentId }, { tokens: add })
  await allocationChanged(tx, log, agentId)
  await recordAudit(tx, {
    action: 'agent.budget',
    actor,
    projectId,
    targetType: 'agent',
    targetId: agentId,
    details: { add },
  })
}
