// The probable cause of a delay: the leaf that is under way longest; if there is none, the leaf that was tried most
// often, then the slowest, then the first that has not begun.
import type { FlowNode, Leaf } from '../../kernel/flow.ts'
import type { TaskRecord } from '../history/trace.ts'
import { parse } from '../machine/leaf-id.ts'
import type { Patterns } from '../machine/pattern.ts'
import { visit } from '../machine/tree.ts'

export type Suspect =
  | { task: TaskRecord; how: 'running' | 'slowest'; ms: number }
  | { task: TaskRecord; how: 'retried' | 'waiting' }

export function suspectOf(tasks: readonly TaskRecord[], now: Date): Suspect | null {
  const running = mostOf(tasks, (task) => (isAtWork(task) ? sinceStart(task, now) : null))
  if (running) return { task: running.best, how: 'running', ms: running.value }
  const retried = mostOf(tasks, (task) => (task.attempts > 1 ? task.attempts : null))
  if (retried) return { task: retried.best, how: 'retried' }
  const slowest = mostOf(tasks, (task) => (task.start_at === null ? null : task.busy))
  if (slowest) return { task: slowest.best, how: 'slowest', ms: slowest.value }
  const waiting = tasks.find((task) => task.status === 'pending')
  return waiting ? { task: waiting, how: 'waiting' } : null
}

export function describeCause(
  suspect: Suspect | null,
  {
    elapsedMs,
    expectedMs,
    detail,
    wait = '',
  }: {
    elapsedMs: number
    expectedMs: number
    detail: string
    /** A sentence about a leaf that waits. */
    wait?: string
  },
): string {
  const late = `${seconds(elapsedMs)} so far, where ${seconds(expectedMs)} were expected.`
  if (!suspect) return `${late} Nothing of it has begun.`
  // If no leaf works, the one that waits is the cause.
  const cause = wait !== '' && suspect.how !== 'running' ? '' : describe(suspect)
  return [late, cause, detail, wait].filter((part) => part !== '').join(' ')
}

function describe(suspect: Suspect): string {
  const { id, name, attempts, error } = suspect.task
  const leaf = id === name ? id : `${name} (${id})`
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

/** A leaf that waits for a person is no cause: nothing but an answer makes it faster. */
const isAtWork = ({ status, waitingSince }: TaskRecord): boolean => status === 'running' && waitingSince === null

/** The time since the first attempt: a leaf that is tried again and again is under way all the while. */
const sinceStart = ({ start_at, waited }: TaskRecord, now: Date): number =>
  start_at === null ? 0 : Math.max(0, now.getTime() - Date.parse(start_at) - waited)

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
 * Items also wait before the stages in front of a slow one, because those are held up. So the slowest stage is the last
 * one with at least half as many waiting items as any other. `done` counts each stage's finished items.
 */
export function slowestStage(done: readonly number[]): number {
  const waiting = done.map((count, stage) => (stage === 0 ? 0 : Math.max(0, (done[stage - 1] ?? 0) - count)))
  const most = Math.max(0, ...waiting)
  return most === 0 ? 0 : waiting.findLastIndex((count) => 2 * count >= most)
}

/** The stages of a task that is a pipeline, if the tree tells which pipeline it is. */
export function stagesOf(root: FlowNode, leafId: string, patterns: Patterns): readonly Leaf[] | null {
  const streams: { id: string | undefined; stages: readonly Leaf[] }[] = []
  visit(root, patterns, (node, pattern) => {
    const stages = pattern.stream?.(node).stages
    if (stages) streams.push({ id: node.id, stages })
  })
  const { name, keys } = parse(leafId)
  const named = streams.find(({ id }) => id === name && keys.length === 0)
  const [only] = streams.length === 1 ? streams : []
  return (named ?? only)?.stages ?? null
}
