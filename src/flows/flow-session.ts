// A flow run in the hands of its owner: the owner's dependencies, the standing of the flow run, the messages that come
// to it, and its journal.
import type { Pool } from '../db/pool.ts'
import type { AppFunction } from '../kernel/app.ts'
import { fault } from '../kernel/fault.ts'
import type { Topology } from '../kernel/flow.ts'
import type { FlowEvent } from '../kernel/flow-run.ts'
import type { Log } from '../kernel/log.ts'
import type { AgentWaits } from './agent-waits.ts'
import type { ClaimedFlow } from './claim-flows.ts'
import type { FlowChange, FlowJournal } from './flow-journal.ts'
import type { FlowStanding, RecordedEvent } from './flow-standing.ts'
import type { LeafSlots } from './leaf-slots.ts'
import type { LeafOutcome, LeafTask } from './machine.ts'
import type { Mailbox } from './mailbox.ts'
import { type PipelineEvent, pipelineEventKinds } from './pipeline/pipeline-event.ts'

export interface FlowDeps {
  pool: Pool
  journal: FlowJournal
  log: Log
  functions: ReadonlyMap<string, AppFunction>
  /** The most leaves under way in a flow run that does not say. */
  leafLimit: number
  /** Room for functions in this process, all flows together. */
  slots: LeafSlots
  /** Other processes live, and may have room. */
  hasOthers: () => boolean
  isHalted: (projectId: string) => boolean
  /** Items between two stages of a pipeline that does not say. */
  bufferOf: (projectId: string) => Promise<number>
  /** The time that leaves have to end by themselves after a cancel. */
  drainMs: (projectId: string) => Promise<number>
  cancelRuns: (projectId: string, runIds: readonly string[]) => Promise<void>
  /** Runs became ready: somebody may take them. */
  onReady: () => void
  /** A flow run has no owner until it has news, or for so long. */
  onParked: (forMs: number) => void
}

export type FlowMessage =
  | { type: 'settled'; task: LeafTask; outcome: LeafOutcome; startedAtMs: number }
  | { type: 'due'; task: LeafTask }
  /** This process has room for functions again. */
  | { type: 'room' }
  /** An agent that is a leaf has ended, or somebody changed something about the flow run. */
  | { type: 'news' }
  | { type: 'expired'; node: string }
  /** A leaf that is watched may be slow by now. */
  | { type: 'watch'; taskId: string }
  | { type: 'stop'; as: 'cancelled' | 'timed_out' }
  /** Leaves had their time to end by themselves. */
  | { type: 'drained' }
  /** This process stops. Functions that it calls may end; where it is urgent, they are cut off. */
  | { type: 'hand_back'; isUrgent: boolean }
  | { type: 'lapse' }

/** Somebody else owns the flow run now. */
export class FlowLost extends Error {}

export interface Session {
  deps: FlowDeps
  flow: ClaimedFlow
  mailbox: Mailbox<FlowMessage>
  after: (ms: number, message: FlowMessage) => void
  /** Fires when the flow run is stopped: nothing new is to be begun. */
  draining: AbortController
  /** The signals of the functions under way, by leaf. */
  signals: Map<string, AbortController>
  standing: FlowStanding
  /** Functions that this process has room for and calls itself, by leaf. */
  local: Set<string>
  /** Functions that are left to any process that takes them, by leaf. */
  handedOut: Set<string>
  /** The instant at which each watched leaf may be slow, by leaf. */
  watching: Map<string, number>
  /** Parts whose time is being watched. */
  timed: Set<string>
  /** The instant at which the time of the flow run is up. */
  endsAtMs: number
  seenLeaves: number
  /** The topology that comes into force with the next append. */
  newTopology: Topology | null
  /** Runs that pipelines wait for. */
  waits: AgentWaits
}

/** Answers whether somebody has asked for the end. */
export async function append(
  { deps, flow }: Session,
  events: readonly (FlowEvent | PipelineEvent)[],
  change: FlowChange,
): Promise<boolean> {
  const hasProgressed = events.some(isDone)
  const written: FlowChange = hasProgressed && flow.crashes > 0 ? { ...change, has_progressed: true } : change
  const answer = await deps.journal.append({ runId: flow.id, fence: flow.fence, events, change: written })
  if (answer.status !== 'written') throw new FlowLost()
  if (hasProgressed) await fault('flow.mid')
  return answer.isCancelled === true
}

/** A unit of resume has ended: no crash makes it run again. */
const isDone = ({ kind }: { kind: string }): boolean => kind === 'task.completed' || kind === 'items.completed'

export async function readEvents(pool: Pool, flowRunId: string): Promise<RecordedEvent[]> {
  // A pipeline reads its own record, page by page; so do sources that are not at their end. Of those
  // that are, and of pipelines that gave much, the value is read here.
  const { rows } = await pool.query<RecordedEvent>(
    `with elsewhere as (
       select data->>'task_id' as task_id, data->>'on_record' as kind, coalesce((
         select max((i.data->>'stage')::int) from flow_events i
         where i.run_id = $1 and i.kind = 'items.completed' and i.data->>'task_id' = e.data->>'task_id'), 0) as stage
       from flow_events e where run_id = $1 and kind = 'task.completed' and data ? 'on_record'
     )
     select kind, data, at from flow_events e where run_id = $1 and (not (kind = any($2)) or exists (
       select from elsewhere w where w.task_id = e.data->>'task_id' and (w.kind = 'pages' and e.kind = 'source.page'
         or w.kind = 'items' and e.kind = 'items.completed' and (e.data->>'stage')::int = w.stage)))
     order by seq`,
    [flowRunId, pipelineEventKinds],
  )
  return rows
}
