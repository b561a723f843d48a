// The probable cause of a delay of a flow run, told from its tasks: the leaf that is under way longest; where none is,
// the one that was tried most often, then the slowest, then the first that has not begun.
import type { FlowNode, Leaf, Pipeline } from '../kernel/flow.ts'
import { nodesWithin } from './nodes-within.ts'
import type { TaskRecord } from './trace.ts'

export type Suspect =
  | { task: TaskRecord; how: 'running' | 'slowest'; ms: number }
  | { task: TaskRecord; how: 'retried' | 'waiting' }

export function suspectOf(tasks: readonly TaskRecord[], now: Date): Suspect | null {
  const running = mostOf(tasks, (task) => (task.status === 'running' ? sinceStart(task, now) : null))
  if (running) return { task: running.best, how: 'running', ms: running.value }
  const retried = mostOf(tasks, (task) => (task.attempts > 1 ? task.attempts : null))
  if (retried) return { task: retried.best, how: 'retried' }
  const slowest = mostOf(tasks, (task) => (task.start_at === null ? null : task.busy))
  if (slowest) return { task: slowest.best, how: 'slowest', ms: slowest.value }
  const waiting = tasks.find((task) => task.status === 'pending')
  return waiting ? { task: waiting, how: 'waiting' } : null
}

/** The whole sentence. `detail` says more about that leaf. */
export function describeCause(
  suspect: Suspect | null,
  { elapsedMs, expectedMs, detail }: { elapsedMs: number; expectedMs: number; detail: string },
): string {
  const late = `${seconds(elapsedMs)} so far, where ${seconds(expectedMs)} were expected.`
  if (!suspect) return `${late} Nothing of it has begun.`
  return `${late} ${describe(suspect)}${detail === '' ? '' : ` ${detail}`}`
}

function describe(suspect: Suspect): string {
  const { id, name, attempts, error } = suspect.task
  const leaf = id === name ? id : `${id} (${name})`
  switch (suspect.how) {
    case 'running': {
      const again = attempts > 1 ? `, now in attempt ${attempts}` : ''
      return `${leaf} has been under way for ${seconds(suspect.ms)}${again}.`
    }
    case 'retried':
      return `${leaf} was tried ${attempts} times${error === null ? '' : `: ${error.slice(0, 500).toWellFormed()}`}.`
    case 'slowest':
      return `Nothing is under way; ${leaf} took longest: ${seconds(suspect.ms)}.`
    case 'waiting':
      return `Nothing has begun; ${leaf} would be first.`
  }
}

/** Of all attempts together: one that is tried again and again is under way all the while. */
const sinceStart = ({ start_at }: TaskRecord, now: Date): number =>
  start_at === null ? 0 : Math.max(0, now.getTime() - Date.parse(start_at))

function mostOf(
  tasks: readonly TaskRecord[],
  measure: (task: TaskRecord) => number | null,
): { best: TaskRecord; value: number } | null {
  let most: { best: TaskRecord; value: number } | null = null
  for (const task of tasks) {
    const value = measure(task)
    if (value !== null && (most === null || value > most.value)) most = { best: task, value }
  }
  return most
}

const seconds = (ms: number): string => `${(ms / 1_000).toFixed(ms < 10_000 ? 1 : 0)} s`

/**
 * Behind a stage that is slow items wait, and before it, because of that, too: it is the last one with a good part of
 * them. `done` says of how many items each stage has rid itself.
 */
export function slowestStage(done: readonly number[]): number {
  const waiting = done.map((count, stage) => (stage === 0 ? 0 : Math.max(0, (done[stage - 1] ?? 0) - count)))
  const most = Math.max(0, ...waiting)
  return most === 0 ? 0 : waiting.findLastIndex((count) => 2 * count >= most)
}

/** The stages of the pipeline that this task is, where the tree says which. */
export function stagesOf(root: FlowNode, taskId: string): readonly Leaf[] | null {
  const pipelines = pipelinesIn(root)
  const named = pipelines.find(({ id }) => id !== undefined && id === taskId.replace(/([#~]\d+)+$/, ''))
  const [only] = pipelines.length === 1 ? pipelines : []
  return (named ?? only)?.stages ?? null
}

function pipelinesIn(node: FlowNode): Pipeline[] {
  return node.type === 'pipeline' ? [node] : nodesWithin(node).flatMap(pipelinesIn)
}

export const hasAdaptive = (node: FlowNode): boolean => node.type === 'adaptive' || nodesWithin(node).some(hasAdaptive)
