import type { Db } from '../db/pool.ts'
import { cutByBytes } from '../journal/read.ts'
import { invalidRequest } from '../kernel/errors.ts'
import type { Page } from '../kernel/fields.ts'
import type { Step } from '../kernel/run.ts'
import type { RunEvent } from '../kernel/run-event.ts'
import { undecidedCalls } from './decisions.ts'

/** A run's own model calls and tool calls, oldest first, up to a number of bytes. The cursor is the last seq seen. */
export async function listSteps(
  db: Db,
  runId: string,
  { limit, cursor }: { limit: number; cursor?: string | undefined },
): Promise<Page<Step>> {
  if (cursor !== undefined && !/^\d{1,15}$/.test(cursor)) throw invalidRequest('cursor is not one that this list gave.')
  let after = Number(cursor ?? 0)
  for (;;) {
    const { rows } = await db.query<FoundStep>(READ, [runId, after, limit + 1])
    const looked = rows.slice(0, limit)
    const isMore = (rows[0]?.found ?? 0) > looked.length
    const items = looked.filter(isOwnStep).flatMap(toSteps)
    after = looked.at(-1)?.seq ?? after
    // Copies of sub-runs' events by earlier releases, and pauses that are no steps, may fill a page.
    if (items.length > 0 || !isMore) return { items, next_cursor: isMore ? String(after) : null }
  }
}

interface FoundStep {
  seq: number
  kind: string
  data: Record<string, unknown>
  at: Date
  args: unknown
  decision: { decision: 'approved' | 'rejected'; by: string | null; at: string } | null
  duration: number | null
  found: number
}

/**
 * A call's arguments stand with its step, or in its announcement. They are looked up once the page is cut, and for
 * tools alone, because a lookup reads the data of the earlier steps.
 */
const READ = `
  with decided as materialized (
    select seq, at, data from run_events where run_id = $1 and kind = 'tool.decided' and origin_seq is null
  )
  select p.seq, p.kind, p.data, p.at, p.found, case when p.kind = 'tool.completed' then (
    select jsonb_build_object('decision', d.data->'decision', 'by', d.data->'by', 'at', d.at) from decided d
    where d.seq < p.seq and d.data->'step' = p.data->'step' and d.data->'call_id' = p.data->'call_id'
    order by d.seq desc limit 1) end as decision,
    case when p.kind = 'tool.completed' then coalesce(p.data->'args', (
    select c->'args' from run_events s, jsonb_array_elements(s.data->'tool_calls') c
    where s.run_id = $1 and s.seq < p.seq and s.kind = 'step.completed' and s.origin_seq is null
      and s.data->'step' = p.data->'step' and not s.data ? 'run_id' and c->>'id' = p.data->>'call_id'
    order by s.seq desc limit 1)) end as args,
    case when p.kind = 'flow.started' then (select (f.data->>'duration')::int from run_events f
      where f.run_id = $1 and f.seq > p.seq and f.kind = 'flow.ended' and f.origin_seq is null
      order by f.seq limit 1) end as duration
  from (${cutByBytes(`
    select e.seq, e.kind, e.data, e.at from run_events e
    where e.run_id = $1 and e.seq > $2 and e.origin_seq is null
      and e.kind in ('step.completed', 'tool.completed', 'run.paused', 'flow.started')
    order by e.seq limit $3`)}) p
  order by p.seq`

const isOwnStep = ({ kind, data }: FoundStep): boolean =>
  data.run_id === undefined && (kind !== 'run.paused' || data.call !== undefined)

/** A pause shows one row for each call that is undecided. */
function toSteps(found: FoundStep): Step[] {
  if (found.kind !== 'run.paused') return [toStep(found)]
  const { data } = { data: found.data } as unknown as Extract<RunEvent, { kind: 'run.paused' }> // written by Muster
  const unknown = { result: null, is_error: false, blocked: null, outcome: 'unknown' } as const
  const started_at = found.at.toISOString()
  return undecidedCalls(data).map((call) => ({
    ...{ started_at, duration: 0, ...call, seq: found.seq, kind: 'tool', ...unknown },
  }))
}

function toStep({ seq, at, kind, data, args, decision, duration: flowMs }: FoundStep): Step {
  const event = { kind, data } as unknown as RunEvent // written by Muster
  if (event.kind === 'step.completed') {
    const { step, text, tool_calls, finish_reason, usage, started_at, duration, request_changes: changes } = event.data
    const calls = tool_calls.map((call) => ({ id: call.id, name: call.name, args: call.args }))
    const changed = changes === undefined ? {} : { request_changes: changes }
    return { step, seq, kind: 'model', text, tool_calls: calls, finish_reason, ...changed, usage, started_at, duration }
  }
  if (event.kind === 'tool.completed') {
    const { step, call_id, name, result, is_error, blocked, started_at, duration } = event.data
    const decided = decision === null ? {} : { decision: { ...decision, at: new Date(decision.at).toISOString() } }
    return { step, seq, kind: 'tool', call_id, name, args, result, is_error, blocked, ...decided, started_at, duration }
  }
  if (event.kind === 'flow.started') {
    return { seq, kind: 'flow', ...event.data, started_at: at.toISOString(), duration: flowMs }
  }
  throw new Error(`${event.kind} is not a step`)
}
