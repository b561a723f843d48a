import type { AgentLeaf } from '../kernel/flow.ts'
import { startAgentLeaf } from './agent-leaves.ts'
import { callFunction } from './call-function.ts'
import { append, type Session } from './flow-session.ts'
import { progressOf } from './flow-standing.ts'
import type { LeafOutcome, LeafTask } from './machine.ts'
import type { PipelineEvent } from './pipeline/pipeline-event.ts'
import { runStream } from './run-stream.ts'

/** Starts a leaf that is told to have begun; what becomes of it comes by the mailbox. */
export async function begin(session: Session, task: LeafTask): Promise<void> {
  const { deps, flow, mailbox, signals } = session
  const { id: flowRunId, project_id: projectId } = flow
  const startedAtMs = Date.now()
  const settled = (outcome: LeafOutcome): void => mailbox.put({ type: 'settled', task, outcome, startedAtMs })
  if (isAgentTask(task)) {
    const problem = await startAgentLeaf(deps.pool, { flowRunId, projectId, task })
    if (problem) settled({ status: 'failed', error: problem })
    else deps.onReady()
    return
  }
  if (isStream(task)) return beginStream(session, task, settled)
  const name = 'function' in task.leaf ? task.leaf.function : ''
  const run = deps.functions.get(name)
  if (!run) return settled({ status: 'failed', error: `There is no function called ${name}.` })
  const { signal, own } = signalFor(session, task.id)
  void callFunction({ task, run, signal, flowRunId, projectId, log: deps.log }).then((outcome) => {
    if (signals.get(task.id) === own) signals.delete(task.id)
    settled(outcome)
  })
}

/** Fires when the flow run is stopped, or this leaf alone. */
function signalFor({ stop, signals }: Session, taskId: string): { signal: AbortSignal; own: AbortController } {
  const own = new AbortController()
  signals.set(taskId, own)
  return { signal: AbortSignal.any([stop.signal, own.signal]), own }
}

type StreamTask = LeafTask & { stream: NonNullable<LeafTask['stream']> }
const isStream = (task: LeafTask): task is StreamTask => task.stream !== null

async function beginStream(session: Session, task: StreamTask, settled: (outcome: LeafOutcome) => void): Promise<void> {
  const { deps, flow, standing, mailbox, waits } = session
  const { pool, log, functions, onReady } = deps
  const buffer = await deps.bufferOf(flow.project_id)
  const { signal } = signalFor(session, task.id)
  const write = async (events: PipelineEvent[]): Promise<void> => {
    await append(session, events, { progress: progressOf(standing, false) })
  }
  runStream({
    ...{
      task,
      flowRunId: flow.id,
      projectId: flow.project_id,
      pool,
      log,
      functions,
      buffer,
      waits,
      signal,
      append: write,
      onReady,
    },
    onProgress: ({ items }) => void standing.items.set(task.id, items),
  }).then(settled, (error: unknown) => {
    log.debug({ flow_run_id: flow.id, err: error }, 'a pipeline could not be written')
    mailbox.put({ type: 'lapse' })
  })
}

export const isAgentTask = (task: LeafTask): task is LeafTask & { leaf: AgentLeaf } => 'agent' in task.leaf
