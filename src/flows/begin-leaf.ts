import { explainFailure } from '../db/failures.ts'
import type { AgentLeaf, FunctionLeaf } from '../kernel/flow.ts'
import { jsonSize } from '../kernel/json-size.ts'
import { runIdsOf, startAgentLeaves } from './agent-leaves.ts'
import { callFunction, type WhileIdle } from './call-function.ts'
import { append, FlowLost, type Session } from './flow-session.ts'
import { progressOf } from './flow-standing.ts'
import { handOut, type NewHandout } from './handouts.ts'
import type { LeafOutcome, LeafTask } from './machine.ts'
import { messageOf } from './pipeline/parts.ts'
import type { PipelineEvent } from './pipeline/pipeline-event.ts'
import { readItems, readPages } from './read-items.ts'
import { TooLarge } from './render.ts'
import { runStream } from './run-stream.ts'
import { createTurns } from './turns.ts'

/**
 * Starts leaves that the journal says have begun; their outcomes come by the mailbox. A problem of one leaf fails that
 * leaf alone. Rejects only where the database cannot be reached.
 */
export async function beginAll(session: Session, tasks: readonly LeafTask[]): Promise<void> {
  const { deps, flow, mailbox, local } = session
  const of = { flowRunId: flow.id, projectId: flow.project_id }
  const startedAtMs = Date.now()
  const settled = (task: LeafTask, outcome: LeafOutcome): void =>
    mailbox.put({ type: 'settled', task, outcome, startedAtMs })
  const fail = (task: LeafTask, error: string): void => settled(task, { status: 'failed', error })
  const agents = tasks.filter(isAgentTask)
  for (const { task, problem } of await startAgentLeaves(deps.pool, of, agents)) {
    // Some runs of the leaf may be under way.
    if (task.isEach) await deps.cancelRuns(flow.project_id, runIdsOf(flow.id, task))
    fail(task, problem)
  }
  if (agents.length > 0) deps.onReady()
  await handOutAll(
    session,
    tasks.filter((task) => isFunctionTask(task) && !local.has(task.id)),
    fail,
  )
  const turn = createTurns()
  for (const task of tasks) {
    try {
      if (isStream(task)) await beginStream(session, task, (outcome) => settled(task, outcome))
      else if (task.isSource) beginSource(session, task, (outcome) => settled(task, outcome))
      else if (local.has(task.id)) callHere(session, task, (outcome) => settled(task, outcome))
    } catch (error) {
      requireOurs(error)
      releaseSlot(session, task.id)
      fail(task, messageOf(error))
    }
    const pause = turn()
    if (pause) await pause
  }
}

/** A failure of the database, or the loss of the flow to another owner, is no leaf's failure. */
function requireOurs(error: unknown): void {
  if (error instanceof FlowLost || explainFailure(error)?.code === 'UNAVAILABLE') throw error
}

/** The most that is handed to other processes in one go, in characters of JSON. */
const MOST_HANDED_OUT = 4_194_304
/** The most that one leaf with several calls may be handed, in characters of JSON. */
const LARGEST_HANDOUT = 64 * 1_048_576

async function handOutAll(
  { deps, flow, handedOut }: Session,
  tasks: readonly LeafTask[],
  fail: (task: LeafTask, error: string) => void,
): Promise<void> {
  const of = { flowRunId: flow.id, projectId: flow.project_id }
  const turn = createTurns()
  let batch: { task: LeafTask; handout: NewHandout }[] = []
  let bytes = 0
  const insert = async (entries: typeof batch): Promise<void> => {
    try {
      await handOut(
        deps.pool,
        of,
        entries.map(({ handout }) => handout),
      )
      for (const { task } of entries) handedOut.add(task.id)
    } catch (error) {
      requireOurs(error)
      const [only] = entries
      if (only && entries.length === 1) fail(only.task, messageOf(error))
      else for (const entry of entries) await insert([entry])
    }
  }
  const flush = async (): Promise<void> => {
    const entries = batch
    batch = []
    bytes = 0
    if (entries.length > 0) await insert(entries)
  }
  for (const task of tasks) {
    const { id, attempt, leaf, isEach } = task
    try {
      const argument = isEach ? [...argumentsOf(task)] : task.argumentOf(0)
      const size = jsonSize(argument, { bytes: LARGEST_HANDOUT, nodes: Number.POSITIVE_INFINITY })
      if (size.bytes > LARGEST_HANDOUT) throw new TooLarge(`It would be handed more than ${LARGEST_HANDOUT} bytes.`)
      batch.push({ task, handout: { id, attempt, leaf, isEach, argument } })
      bytes += size.bytes
    } catch (error) {
      fail(task, messageOf(error))
    }
    if (bytes > MOST_HANDED_OUT) await flush()
    const pause = turn()
    if (pause) await pause
  }
  await flush()
}

/** Yields the arguments one by one: all of them together may be more than there is room for. */
function* argumentsOf({ calls, argumentOf }: LeafTask): Generator<unknown> {
  for (let place = 0; place < calls; place++) yield argumentOf(place)
}

/** Throws where the argument of the leaf cannot be rendered. */
function callHere(session: Session, task: LeafTask, settled: (outcome: LeafOutcome) => void): void {
  const { deps, flow, signals } = session
  const { id, attempt, leaf, isEach } = task
  const name = 'function' in leaf ? leaf.function : ''
  const run = deps.functions.get(name)
  if (!run) throw new Error(`There is no function called ${name}.`)
  const argument = isEach ? argumentsOf(task) : task.argumentOf(0)
  const { signal, own } = signalFor(session, id)
  const whileIdle = withoutSlot(session, id, signal)
  const of = { flowRunId: flow.id, projectId: flow.project_id, log: deps.log, whileIdle }
  void callFunction({ task: { id, attempt, leaf, isEach, argument }, run, signal, ...of }).then((outcome) => {
    if (signals.get(id) === own) signals.delete(id)
    releaseSlot(session, id)
    settled(outcome)
  })
}

/** A leaf that comes back takes a slot even where none is free: leaves that would begin next wait a little longer. */
function withoutSlot(session: Session, taskId: string, signal: AbortSignal): WhileIdle {
  const { deps, flow, local } = session
  return async (wait) => {
    const hadSlot = local.has(taskId)
    releaseSlot(session, taskId)
    try {
      return await wait()
    } finally {
      if (hadSlot && !signal.aborted) {
        deps.slots.take(flow.project_id)
        local.add(taskId)
      }
    }
  }
}

/** Does nothing where the leaf has no slot. */
export function releaseSlot({ deps, flow, local }: Pick<Session, 'deps' | 'flow' | 'local'>, taskId: string): void {
  if (local.delete(taskId)) deps.slots.release(flow.project_id)
}

/** Fires when the flow run is stopped, or this leaf alone. */
function signalFor({ signals }: Session, taskId: string): { signal: AbortSignal; own: AbortController } {
  const own = new AbortController()
  signals.set(taskId, own)
  return { signal: own.signal, own }
}

type StreamTask = LeafTask & { stream: NonNullable<LeafTask['stream']> }
const isStream = (task: LeafTask): task is StreamTask => task.stream !== null

async function beginStream(session: Session, task: StreamTask, settled: (outcome: LeafOutcome) => void): Promise<void> {
  const { deps, flow, standing, mailbox, waits } = session
  const { pool, log, functions, onReady } = deps
  const buffer = await deps.bufferOf(flow.project_id)
  const { signal } = signalFor(session, task.id)
  const write = async (events: PipelineEvent[]): Promise<void> => {
    const isCancelled = await append(session, events, { progress: progressOf(standing, false) })
    if (isCancelled) mailbox.put({ type: 'stop', as: 'cancelled' })
  }
  runStream({
    ...{ task, flowRunId: flow.id, projectId: flow.project_id, pool, log, functions, buffer, waits, signal },
    ...{ append: write, onReady, draining: session.draining.signal },
    onProgress: ({ items }) => void standing.items.set(task.id, items),
  }).then(settled, (error: unknown) => giveUp(session, error, settled))
}

/** A source may give more items than one commit should hold, and may give them one by one. */
function beginSource(session: Session, task: LeafTask, settled: (outcome: LeafOutcome) => void): void {
  const { deps, flow } = session
  const name = 'function' in task.leaf ? task.leaf.function : ''
  const run = deps.functions.get(name)
  if (!run) {
    settled({ status: 'failed', error: `There is no function called ${name}.` })
    return
  }
  const argument = task.argumentOf(0)
  const { signal } = signalFor(session, task.id)
  const context = {
    ...{ signal, key: `${flow.id}:${task.id}`, attempt: task.attempt, run_id: flow.id, project_id: flow.project_id },
    ...{ log: deps.log, emit: () => {} },
  }
  const read = async (): Promise<LeafOutcome> =>
    readItems({
      open: () => run(argument as never, context), // its author's word
      known: await readPages(deps.pool, flow.id, task.id),
      signal: AbortSignal.any([signal, session.draining.signal]),
      write: async ({ from, items, isLast }) => {
        const data = { task_id: task.id, from, items, is_last: isLast }
        await append(session, [{ kind: 'source.page', data }], {})
      },
    })
  read().then(settled, (error: unknown) => giveUp(session, error, settled))
}

/** If the journal could not be written, the flow's next owner goes on; any other failure would only happen again. */
function giveUp({ deps, flow, mailbox }: Session, error: unknown, settled: (outcome: LeafOutcome) => void): void {
  try {
    requireOurs(error)
    settled({ status: 'failed', error: messageOf(error) })
  } catch {
    deps.log.debug({ flow_run_id: flow.id, err: error }, 'a leaf could not be written')
    mailbox.put({ type: 'lapse' })
  }
}

export const isAgentTask = (task: LeafTask): task is LeafTask & { leaf: AgentLeaf } => 'agent' in task.leaf

/** A function that is called as it is, here or elsewhere. */
export const isFunctionTask = (task: LeafTask): task is LeafTask & { leaf: FunctionLeaf } =>
  'function' in task.leaf && task.stream === null && !task.isSource
