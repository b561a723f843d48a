// A supervisor's run as a stream: the text of the finalizer, changes of the graph, and the end. All of it is read from
// the journal, so a reader may reconnect after any event, to any process.
import type { Db } from '../db/pool.ts'
import { type FollowOptions, followRun } from '../journal/follow.ts'
import { runNotFound } from '../kernel/errors.ts'
import type { RunEvent } from '../kernel/run-event.ts'
import type { AgentRunAnswer } from '../kernel/supervisor.ts'
import { readRunAnswer } from './answer.ts'

type SupervisorEvent =
  | { event_type: 'token'; data: { text: string } }
  | { event_type: 'status_update'; data: Record<string, unknown> & { run_id: string } }
  | { event_type: 'final'; data: FinalData }

export type FinalData = Pick<AgentRunAnswer['result'], 'status' | 'output' | 'error'> & { run_id: string }

export interface Streamed {
  event: SupervisorEvent
  /** The seq after which a reader may reconnect; absent for parts of a text. */
  seq?: number
}

/**
 * Always ends with `final`, unless the signal fires. Of the ends of a continued run only the newest is sent. A reader
 * that reconnects (`after` > 0) in the midst of a text gets a `reset`, then the text from its beginning.
 */
export async function* followSupervisor(
  source: FollowOptions & { db: Db },
  { projectId, runId }: { projectId: string; runId: string },
  { after, signal }: { after: number; signal: AbortSignal },
): AsyncGenerator<Streamed> {
  const end = (seq: number): Promise<SupervisorEvent | null> => endAt(source.db, { projectId, runId, seq })
  const told = after === 0 ? null : await end(after)
  if (told) return yield { seq: after, event: told }
  /** The step whose text is the answer, and the part of the text that was sent. */
  let finalStep = after === 0 ? null : await textUnderWay(source.db, runId, after)
  let shown = ''
  const update = (data: Record<string, unknown>): SupervisorEvent => ({
    event_type: 'status_update',
    data: { run_id: runId, ...data },
  })
  if (finalStep !== null) yield { event: update({ reset: true }) }
  for await (const followed of followRun(source, runId, { after, signal })) {
    if (followed.type === 'text') {
      const { runId: whose, step, text } = followed.text
      if (whose !== runId || step !== finalStep) continue
      shown += text
      yield { event: { event_type: 'token', data: { text } } }
      continue
    }
    const { seq } = followed.event
    const data = JSON.parse(followed.event.data)
    // This journal has events of specialists, too.
    if (data.run_id !== undefined) continue
    const event = { kind: followed.event.kind, data } as RunEvent // written by us; unknown kinds are passed over
    switch (event.kind) {
      case 'run.started':
        yield { seq, event: update({ status: 'RUNNING', active_agent: 'supervisor' }) }
        break
      case 'run.continued':
        yield { seq, event: update({ status: 'RUNNING' }) }
        break
      case 'supervisor.updated':
        yield {
          seq,
          // The graph has decided to end; the finalizer has still to write the answer or the question.
          event: update({ active_agent: event.data.active_agent, status: 'RUNNING', plan: event.data.plan }),
        }
        break
      case 'node.entered':
        if (event.data.node === 'finalizer') finalStep = event.data.step
        // The model became unavailable after a part of the text, and the run was continued.
        if (shown !== '') yield { event: update({ reset: true }) }
        shown = ''
        yield { seq, event: update({ active_agent: event.data.node }) }
        break
      case 'step.restarted':
        if (event.data.step !== finalStep) break
        shown = ''
        yield { seq, event: update({ reset: true }) }
        break
      case 'step.completed': {
        if (event.data.node?.name !== 'finalizer') break
        const { text } = event.data
        const isGoingOn = text.startsWith(shown)
        if (!isGoingOn) yield { event: update({ reset: true }) }
        const rest = isGoingOn ? text.slice(shown.length) : text
        if (rest !== '') yield { event: { event_type: 'token', data: { text: rest } } }
        shown = text
        break
      }
      case 'run.paused':
      case 'run.completed':
      case 'run.failed':
      case 'run.cancelled': {
        const final = await end(seq)
        if (!final) break
        yield { seq, event: final }
        return
      }
    }
  }
  if (!signal.aborted) yield { event: goneOf(runId) }
}

/**
 * The end of the run, for a reader that has seen the events up to `seq`. Null while the run is running, and if a newer
 * end follows. The end is read first; an end that is written after this read follows later.
 */
async function endAt(
  db: Db,
  { projectId, runId, seq }: { projectId: string; runId: string; seq: number },
): Promise<SupervisorEvent | null> {
  const final = await finalOf(db, projectId, runId)
  if (!final) return null
  // The journal is read backwards, which is quick for a resting run, however long its journal is.
  const { rows } = await db.query<{ seq: number }>(
    `select seq from run_events where run_id = $1 and origin_seq is null
       and kind in ('run.paused', 'run.completed', 'run.failed', 'run.cancelled')
     order by seq desc limit 1`,
    [runId],
  )
  return (rows[0]?.seq ?? 0) <= seq ? final : null
}

/** The step in which the finalizer was writing at this point of the journal, or null. */
async function textUnderWay(db: Db, runId: string, at: number): Promise<number | null> {
  const { rows } = await db.query<{ kind: string; data: { node?: unknown; step: number } }>(
    `select kind, data from run_events
     where run_id = $1 and seq <= $2 and origin_seq is null and kind in ('node.entered', 'step.completed')
     order by seq desc limit 1`,
    [runId, at],
  )
  const [last] = rows
  return last?.kind === 'node.entered' && last.data.node === 'finalizer' ? last.data.step : null
}

/** Null while the run is running. */
async function finalOf(db: Db, projectId: string, runId: string): Promise<SupervisorEvent | null> {
  const { result } = await readRunAnswer(db, projectId, runId)
  if (result.status === 'RUNNING') return null
  const { status, output, error } = result
  return { event_type: 'final', data: { status, output, ...(error ? { error } : {}), run_id: runId } }
}

function goneOf(runId: string): SupervisorEvent {
  const { code, message } = runNotFound()
  const error = { code, message, details: { run_id: runId } }
  return { event_type: 'final', data: { status: 'FAILED', output: null, error, run_id: runId } }
}
