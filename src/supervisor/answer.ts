// A supervisor's run as the callers of /v1 see it.
import type { Db } from '../db/pool.ts'
import { runNotFound } from '../kernel/errors.ts'
import { isId } from '../kernel/id.ts'
import type { PauseReason, RunStatus } from '../kernel/run.ts'
import {
  type AgentRunAnswer,
  isSupervisor,
  newSupervisorState,
  type RunFault,
  type SupervisorState,
  type SystemPart,
} from '../kernel/supervisor.ts'
import { decodeValue } from './checkpoints/plain-values.ts'
import { CHANNELS } from './graph.ts'

interface Row {
  id: string
  part: SystemPart | null
  status: RunStatus
  pause_reason: PauseReason | null
  summary: string | null
  error_code: string | null
  error_message: string | null
  completed_at: Date | null
  /** Status of a run that was answered or continued; the worker that claims the run next finds the answer. */
  is_woken: boolean
  state: string | null
}

const CHANNEL = CHANNELS.supervisor

/**
 * The state after the last step, read without LangGraph. The step number decides which is last, because the ids of
 * checkpoints depend on clocks.
 */
const READ = `
  select r.id, r.part, r.status, r.pause_reason, r.summary, r.error_code, r.error_message, r.completed_at,
    r.ready_at is not null as is_woken, (
    select v.value::text from supervisor_checkpoints c join supervisor_channels v
      on v.project_id = c.project_id and v.thread_id = c.thread_id and v.checkpoint_ns = c.checkpoint_ns
        and v.channel = '${CHANNEL}' and v.version = c.checkpoint->'channel_versions'->>'${CHANNEL}'
    where c.project_id = r.project_id and c.thread_id = r.id::text and c.checkpoint_ns = ''
    order by (c.metadata->>'step')::int desc, c.checkpoint_id desc limit 1) as state
  from agent_runs r where r.id = $1 and r.project_id = $2`

export async function readRunAnswer(db: Db, projectId: string, runId: string): Promise<AgentRunAnswer> {
  const { rows } = isId(runId) ? await db.query<Row>(READ, [runId, projectId]) : { rows: [] }
  const row = rows[0]
  if (!row || !isSupervisor(row.part)) throw runNotFound()
  const { variant, context } = row.part
  const status = statusOf(row)
  const fault = status === 'FAILED' ? faultOf(row) : null
  const hasText = status === 'DONE' || status === 'ESCALATE'
  return {
    result: {
      status,
      output: hasText ? { type: 'text', content: row.summary ?? '' } : null,
      supervisor_state: stateOf(row, context.context_id),
      ...(fault ? { error: fault } : {}),
    },
    metadata: { run_id: row.id, system_variant: variant },
  }
}

function statusOf({
  status,
  pause_reason: reason,
  completed_at: endedAt,
  is_woken: isWoken,
}: Row): AgentRunAnswer['result']['status'] {
  switch (status) {
    case 'completed':
      return 'DONE'
    case 'failed':
    case 'cancelled':
      return 'FAILED'
    case 'paused':
      if (isWoken) return 'RUNNING'
      if (reason === 'human') return 'ESCALATE'
      // Every other wait ends without a person.
      return reason === 'unavailable' || endedAt !== null ? 'FAILED' : 'RUNNING'
    default:
      return 'RUNNING'
  }
}

const TOO_LONG = 'The task and its results so far are longer than the model can read.'

function faultOf({ id, status, pause_reason: reason, error_code: code, error_message: message }: Row): RunFault {
  const details = { run_id: id }
  if (status === 'cancelled') return { code: 'CANCELLED', message: 'The run was cancelled.', details }
  if (reason === 'context') return { code: 'MODEL_ERROR', message: TOO_LONG, details }
  if (code === null) return { code: 'INTERNAL_ERROR', message: `The run stopped: ${reason ?? status}.`, details }
  return { code, message: message ?? 'The run failed.', details }
}

function stateOf({ id, state }: Row, contextId: string | null): SupervisorState {
  if (state === null) return newSupervisorState(id, contextId)
  return decodeValue(state) as SupervisorState // written by the graph
}
