import type { Db } from '../db/pool.ts'
import { invalidRequest } from '../kernel/errors.ts'
import type { Page } from '../kernel/fields.ts'
import type { Step } from '../kernel/run.ts'
import type { RunEvent } from '../kernel/run-event.ts'

/** A run's own model calls and tool calls, oldest first. The cursor is the last seq seen. */
export async function listSteps(
  db: Db,
  runId: string,
  { limit, cursor }: { limit: number; cursor?: string | undefined },
): Promise<Page<Step>> {
  if (cursor !== undefined && !/^\d{1,15}$/.test(cursor)) throw invalidRequest('cursor is not one that this list gave.')
  // What a tool was called with stands with its step, and in its announcement where it was made.
  const { rows } = await db.query<{ seq: number; kind: string; data: unknown; at: Date; args: unknown }>(
    `select e.seq, e.kind, e.data, e.at, coalesce(e.data->'args',
       (select c->'args' from run_events s, jsonb_array_elements(s.data->'tool_calls') c
        where s.run_id = e.run_id and s.seq < e.seq and s.kind = 'step.completed' and s.data->'step' = e.data->'step'
          and not s.data ? 'run_id' and c->>'id' = e.data->>'call_id'
        order by s.seq desc limit 1)) as args
     from run_events e
     where e.run_id = $1 and e.seq > $2 and not e.data ? 'run_id'
       and (e.kind in ('step.completed', 'tool.completed') or e.kind = 'run.paused' and e.data ? 'call')
     order by e.seq limit $3`,
    [runId, Number(cursor ?? 0), limit + 1],
  )
  const shown = rows.slice(0, limit)
  return {
    items: shown.map(({ seq, kind, data, at, args }) => toStep(seq, at, { kind, data } as RunEvent, args)), // written by us
    next_cursor: rows.length > limit ? String(shown.at(-1)?.seq) : null,
  }
}

function toStep(seq: number, at: Date, event: RunEvent, args: unknown): Step {
  if (event.kind === 'step.completed') {
    const { step, text, tool_calls, finish_reason, usage, started_at, duration } = event.data
    const calls = tool_calls.map((call) => ({ id: call.id, name: call.name, args: call.args }))
    return { step, seq, kind: 'model', text, tool_calls: calls, finish_reason, usage, started_at, duration }
  }
  if (event.kind === 'tool.completed') {
    const { step, call_id, name, result, is_error, blocked, started_at, duration } = event.data
    return { step, seq, kind: 'tool', call_id, name, args, result, is_error, blocked, started_at, duration }
  }
  if (event.kind === 'run.paused' && event.data.call_id && event.data.call) {
    const { call_id, call } = event.data
    const unknown = { result: null, is_error: false, blocked: null, outcome: 'unknown' } as const
    return { ...call, seq, kind: 'tool', call_id, ...unknown, started_at: at.toISOString(), duration: 0 }
  }
  throw new Error(`${event.kind} is no step`)
}
