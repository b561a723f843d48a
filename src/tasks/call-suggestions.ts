// Calls that wait for a person. The run that asks for a call makes a suggestion, once, and makes the call itself when the
// suggestion is approved.
import { recordAudits } from '../audit/record.ts'
import type { Db, Pool } from '../db/pool.ts'
import { inTransaction } from '../db/transaction.ts'
import { cleanJson, cleanText } from '../journal/clean-json.ts'
import { cutText } from '../kernel/cut-text.ts'
import { idFrom } from '../kernel/id.ts'
import { systemActor } from '../kernel/principal.ts'
import { type Creator, MAX_TITLE, type SuggestedCall, type TaskStatus } from '../kernel/task.ts'

/** A run that continues another asks anew: what was not decided there is not decided here. */
export const callTaskId = (runId: string, callRef: string): string => idFrom(`${runId}:approval:${callRef}`)

export interface HeldCall {
  taskId: string
  projectId: string
  runId: string
  agentId: string
  /** The id of the call in its run. */
  callId: string
  /** The name under which agents list the tool. */
  tool: string
  args: unknown
  reasoning: string
  schemaHash: string
  depth: number
}

/** Puts the call before people. A cancelled run asks nothing: the cancel, which locks the run, has closed its tasks. */
export async function suggestCall(db: Db, held: HeldCall): Promise<void> {
  const creator: Creator = { type: 'agent', id: held.agentId }
  const change: SuggestedCall = { op: 'call', tool: held.tool, args: held.args }
  await db.query(
    `insert into tasks (id, project_id, kind, title, description, priority, created_by, changes, reasoning, run_id,
       chain_depth, metadata, call)
     select $1::uuid, $2::uuid, 'suggestion', $3::text, $4::text, 'high', $5::jsonb, $6::jsonb, $4::text, id, $8::int,
       $9::jsonb, $10::jsonb
     from agent_runs where id = $7 and cancel_requested_at is null and completed_at is null for share
     on conflict (id) do nothing`,
    [
      held.taskId,
      held.projectId,
      cleanText(cutText(`Call ${held.tool}`, MAX_TITLE, '…')),
      cleanText(held.reasoning),
      JSON.stringify(creator),
      cleanJson([change]),
      held.runId,
      held.depth,
      cleanJson({ run_id: held.runId, call_id: held.callId }),
      JSON.stringify({ schema_hash: held.schemaHash }),
    ],
  )
}

export type CallDecision =
  /** `leftMs`: the time until the call counts as rejected; null if there is no limit. */
  | { kind: 'open'; leftMs: number | null }
  | { kind: 'approved'; by: string | null; schemaHash: string }
  | { kind: 'rejected'; by: string | null; reason: string | null }

/** The decisions by task. A task that does not exist is absent. */
export async function readDecisions(
  db: Db,
  taskIds: readonly string[],
  timeoutMs: number | null,
): Promise<Map<string, CallDecision>> {
  const { rows } = await db.query<DecisionRow>(
    `select id, status, decided_by, call->>'schema_hash' as schema_hash, result->>'reason' as reason,
       $2::float8 - extract(epoch from muster.now() - created_at) * 1000 as left_ms
     from tasks where id = any($1)`,
    [taskIds, timeoutMs],
  )
  return new Map(rows.map((row) => [row.id, decisionOf(row)]))
}

interface DecisionRow {
  id: string
  status: TaskStatus
  decided_by: string | null
  schema_hash: string
  reason: string | null
  left_ms: number | null
}

function decisionOf({ status, decided_by: by, schema_hash: schemaHash, reason, left_ms }: DecisionRow): CallDecision {
  switch (status) {
    case 'completed':
      return { kind: 'approved', by, schemaHash }
    case 'rejected':
      return { kind: 'rejected', by, reason }
    case 'cancelled':
      return { kind: 'rejected', by, reason: 'The suggestion was withdrawn.' }
    default:
      return { kind: 'open', leftMs: left_ms === null ? null : Math.max(0, Number(left_ms)) }
  }
}

/** Rejects the suggestions that nobody decided about in time. A decision that is committed first counts. */
export async function expireCalls(pool: Pool, taskIds: readonly string[], timeoutMs: number): Promise<void> {
  await inTransaction(pool, async (tx) => {
    const { rows } = await tx.query<{ id: string; project_id: string }>(
      `update tasks set status = 'rejected', result = $3, completed_at = muster.now()
       where id = any($1) and status = 'pending' and created_at <= muster.now() - $2::float8 * interval '1 ms'
       returning id, project_id`,
      [taskIds, timeoutMs, JSON.stringify({ reason: `Nobody decided within ${timeoutMs} ms (approval_timeout).` })],
    )
    const notes = rows.map(({ id, project_id: projectId }) => ({
      action: 'task.reject',
      actor: systemActor,
      projectId,
      targetType: 'task',
      targetId: id,
      details: { reason: 'approval_timeout' },
    }))
    if (notes.length > 0) await recordAudits(tx, notes)
  })
}
