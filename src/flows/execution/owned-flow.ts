// The execution of a flow run by its owner: its dependencies, the state of the flow run, its messages and its journal.
import type { Pool } from '../../db/pool.ts'
import type { AppFunction } from '../../kernel/app.ts'
import { fault } from '../../kernel/fault.ts'
import type { Topology } from '../../kernel/flow.ts'
import type { FlowEvent } from '../../kernel/flow-run.ts'
import type { Log } from '../../kernel/log.ts'
import type { FlowLeaf } from '../machine/flow-leaf.ts'
import type { LeafOutcome } from '../machine/machine.ts'
import type { Patterns } from '../machine/pattern.ts'
import { type PipelineEvent, pipelineEventKinds } from '../pipeline/pipeline-event.ts'
import type { LeafRuns } from './agent-leaves.ts'
import type { AgentWaits } from './agent-waits.ts'
import type { ClaimedFlow } from './claim.ts'
import type { FlowChange, FlowJournal } from './journal.ts'
import type { LeafSlots } from './leaf-slots.ts'
import type { Mailbox } from './mailbox.ts'
import type { FlowState, RecordedEvent } from './state.ts'
import { wakeParent } from './wake-parent.ts'

export interface FlowDeps {
  pool: Pool
  patterns: Patterns
  journal: FlowJournal
  log: Log
  functions: ReadonlyMap<string, AppFunction>
  /** The most leaves under way in a flow run that sets no number of workers. */
  leafLimit: number
  /** The room for functions in this process, shared by all flows. */
  slots: LeafSlots
  /** True if other processes live, and may have room. */
  hasOthers: () => boolean
  isHalted: (projectId: string) => boolean
  /** The number of items between two stages of a pipeline that sets none. */
  bufferOf: (projectId: string) => Promise<number>
  /** The time in which leaves may end by themselves after a cancel. */
  drainMs: (projectId: string) => Promise<number>
  cancelRuns: (projectId: string, runIds: readonly string[]) => Promise<void>
  /** Called when runs became ready and may be taken. */
  onReady: () => void
  /** Called when a flow run is parked: it has no owner until it has news, or for this long. */
  onParked: (forMs: number) => void
}

/** The end of a flow run that is stopped. */
export type FlowStop = 'cancelled' | 'timed_out'

export type FlowMessage =
  | { type: 'settled'; leaf: FlowLeaf; outcome: LeafOutcome; startedAtMs: number }
  | { type: 'due'; leaf: FlowLeaf }
  | { type: 'room' }
  /** The earlier run of an agent leaf may have ended: the leaf begins. */
  | { type: 'begin'; leaf: FlowLeaf }
  /** An agent leaf has ended, or somebody changed the flow run. */
  | { type: 'news' }
  | { type: 'expired'; node: string }
  /** A watched leaf may be slow by now. */
  | { type: 'watch'; leafId: string }
  | { type: 'stop'; as: FlowStop }
  /** The flow run drains. Leaves that only wait are stopped. */
  | { type: 'look_for_waits' }
  /** The time in which leaves may end by themselves is over. */
  | { type: 'drained' }
  /** This process stops. Functions that it calls may end; if it is urgent, they are cut off. */
  | { type: 'hand_back'; isUrgent: boolean }
  | { type: 'lapse' }

/** Another process owns the flow run now. */
export class FlowLost extends Error {}

export interface OwnedFlow {
  deps: FlowDeps
  flow: ClaimedFlow
  /** The facts that every run of a leaf shares. */
  leafRuns: LeafRuns
  mailbox: Mailbox<FlowMessage>
  after: (ms: number, message: FlowMessage) => void
  /** Fires when the flow run is stopped and nothing new is to be begun. */
  draining: AbortController
  /** The signals of the functions under way, by leaf. */
  signals: Map<string, AbortController>
  state: FlowState
  /** Functions that this process has room for and calls itself, by leaf. */
  local: Set<string>
  /** Agent leaves that begin when their earlier runs have ended. */
  ending: Set<string>
  /** Functions that are left to any process that takes them, by leaf. */
  handedOut: Set<string>
  /** The instant from which on each watched leaf may be slow, by leaf. */
  watching: Map<string, number>
  /** Parts whose timeout has a timer. */
  timed: Set<string>
  /** The instant from which its timeout counts, by our clock: its start, later by the time in which it stood still. */
  countsFromMs: number
  /** The instant at which its time may be up; then it is looked at. */
  checkEndAtMs: number
  /** The instant at which the timer for that look rings. */
  timerAtMs: number
  isNew: boolean
  seenLeaves: number
  seenAdjustments: number
  /** The topology that comes into force with the next append. */
  newTopology: Topology | null
  /** The runs that pipelines wait for. */
  waits: AgentWaits
}

/** Returns true if somebody has asked for the end. */
export async function appendToFlow(
  { deps, flow }: Pick<OwnedFlow, 'deps' | 'flow'>,
  events: readonly (FlowEvent | PipelineEvent)[],
  change: FlowChange,
): Promise<boolean> {
  const hasProgressed = events.some(isDone)
  const { parent_run_id: parent } = flow
  const progressed: FlowChange = hasProgressed && flow.crashes > 0 ? { ...change, has_progressed: true } : change
  const written: FlowChange = parent === null ? progressed : { ...progressed, is_inner: true }
  const entry = { runId: flow.id, fence: flow.fence, events, change: written }
  const answer =
    parent !== null && change.ended
      ? await deps.journal.appendAfter(deps.pool, (tx) => wakeParent(tx, parent, flow.id).then(() => entry))
      : await deps.journal.append(entry)
  if (answer.status !== 'written') throw new FlowLost()
  if (hasProgressed) await fault('flow.mid')
  if (parent !== null && change.ended) {
    await fault('final.after_commit')
    deps.onReady()
  }
  return answer.isCancelled === true
}

/** True for events after which a leaf is never repeated. */
const isDone = ({ kind }: { kind: string }): boolean => kind === 'task.completed' || kind === 'items.completed'

export async function readFlowJournal(pool: Pool, flowRunId: string): Promise<RecordedEvent[]> {
  // A pipeline, and a source that has not given all its items, read their own records page by page. The values of
  // complete sources, and of pipelines with a large output, are read here.
  const { rows } = await pool.query<RecordedEvent>(
    `with elsewhere as (
       select data->>'task_id' as task_id, data->>'on_record' as kind, coalesce((
         select max((i.data->>'stage')::int) from flow_events i
         where i.run_id = $1 and i.kind = 'items.completed' and i.data->>'task_id' = e.data->>'task_id'), 0) as stage
       from flow_events e where run_id = $1 and kind = 'task.completed' and data ? 'on_record'
     )
     select kind, data - 'called' as data, at from flow_events e where run_id = $1 and (not (kind = any($2)) or exists (
       select from elsewhere w where w.task_id = e.data->>'task_id' and (w.kind = 'pages' and e.kind = 'source.page'
         or w.kind = 'items' and e.kind = 'items.completed' and (e.data->>'stage')::int = w.stage)))
     order by seq`,
    [flowRunId, pipelineEventKinds],
  )
  return rows
}
