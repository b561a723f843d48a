import type { AgentLeaf, FunctionLeaf } from '../kernel/flow.ts'
import { startAgentLeaves } from './agent-leaves.ts'
import { callFunction } from './call-function.ts'
import { append, type Session } from './flow-session.ts'
import { progressOf } from './flow-standing.ts'
import { handOut } from './handouts.ts'
import type { LeafOutcome, LeafTask } from './machine.ts'
import type { PipelineEvent } from './pipeline/pipeline-event.ts'
import { readItems, readPages } from './read-items.ts'
import { runStream } from './run-stream.ts'

/** Starts leaves that are told to have begun; what becomes of them comes by the mailbox. */
export async function beginAll(session: Session, tasks: readonly LeafTask[]): Promise<void> {
  const { deps, flow, mailbox, local, handedOut } = session
  const of = { flowRunId: flow.id, projectId: flow.project_id }
  const startedAtMs = Date.now()
  const settled = (task: LeafTask, outcome: LeafOutcome): void =>
    mailbox.put({ type: 'settled', task, outcome, startedAtMs })
  const agents = tasks.filter(isAgentTask)
  for (const { task, problem } of await startAgentLeaves(deps.pool, of, agents)) {
    settled(task, { status: 'failed', error: problem })
  }
  if (agents.length > 0) deps.onReady()
  const left = tasks.filter((task) => isFunctionTask(task) && !local.has(task.id))
  for (const task of left) handedOut.add(task.id)
  await handOut(deps.pool, of, left)
  for (const task of tasks) {
    if (isStream(task)) await beginStream(session, task, (outcome) => settled(task, outcome))
    else if (task.isSource) beginSource(session, task, (outcome) => settled(task, outcome))
    else if (local.has(task.id)) callHere(session, task, (outcome) => settled(task, outcome))
  }
}

function callHere(session: Session, task: LeafTask, settled: (outcome: LeafOutcome) => void): void {
  const { deps, flow, signals } = session
  const run = 'function' in task.leaf ? deps.functions.get(task.leaf.function) : undefined
  if (!run) return
  const { signal, own } = signalFor(session, task.id)
  const of = { flowRunId: flow.id, projectId: flow.project_id, log: deps.log }
  void callFunction({ task, run, signal, ...of }).then((outcome) => {
    if (signals.get(task.id) === own) signals.delete(task.id)
    releaseSlot(session, task.id)
    settled(outcome)
  })
}

/** Nothing happens where it has none. */
export function releaseSlot({ deps, local }: Pick<Session, 'deps' | 'local'>, taskId: string): void {
  if (local.delete(taskId)) deps.slots.release()
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
  }).then(settled, (error: unknown) => {
    log.debug({ flow_run_id: flow.id, err: error }, 'a pipeline could not be written')
    mailbox.put({ type: 'lapse' })
  })
}

/** It may give more than one commit should hold, and one by one. */
function beginSource(session: Session, task: LeafTask, settled: (outcome: LeafOutcome) => void): void {
  const { deps, flow, mailbox } = session
  const name = 'function' in task.leaf ? task.leaf.function : ''
  const run = deps.functions.get(name)
  if (!run) {
    settled({ status: 'failed', error: `There is no function called ${name}.` })
    return
  }
  const { signal } = signalFor(session, task.id)
  const context = {
    ...{ signal, key: `${flow.id}:${task.id}`, attempt: task.attempt, run_id: flow.id, project_id: flow.project_id },
    ...{ log: deps.log, emit: () => {} },
  }
  const read = async (): Promise<LeafOutcome> =>
    readItems({
      open: () => run(task.argument as never, context), // its author's word
      known: await readPages(deps.pool, flow.id, task.id),
      signal: AbortSignal.any([signal, session.draining.signal]),
      write: async ({ from, items, isLast }) => {
        const data = { task_id: task.id, from, items, is_last: isLast }
        await append(session, [{ kind: 'source.page', data }], {})
      },
    })
  read().then(settled, (error: unknown) => {
    deps.log.debug({ flow_run_id: flow.id, err: error }, 'a source could not be written')
    mailbox.put({ type: 'lapse' })
  })
}

export const isAgentTask = (task: LeafTask): task is LeafTask & { leaf: AgentLeaf } => 'agent' in task.leaf

/** A function that is called as it is, here or elsewhere. */
export const isFunctionTask = (task: LeafTask): task is LeafTask & { leaf: FunctionLeaf } =>
  'function' in task.leaf && task.stream === null && !task.isSource
