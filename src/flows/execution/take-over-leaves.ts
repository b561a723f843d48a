// Finished leaves are not done again: a retry of a pattern keeps the outcomes of its finished leaves, and a flow run that
// resumes another takes over every finished leaf of it. The outcomes are journalled anew, under the ids they have here.
import type { Pool } from '../../db/pool.ts'
import { planProblem, readDecision } from '../../kernel/decision.ts'
import type { FlowEvent } from '../../kernel/flow-run.ts'
import { isRecord } from '../../kernel/is-record.ts'
import type { FlowLeaf } from '../machine/flow-leaf.ts'
import { unitOf } from '../machine/leaf-id.ts'
import { attemptsOf } from '../machine/patterns/run-keys.ts'
import { noteBegun } from './note-begun.ts'
import { type OwnedFlow, readFlowJournal } from './owned-flow.ts'
import { takeUntold } from './settle-leaf.ts'
import { attemptKey, type FinishedLeaf, type RecordedEvent, settle, slow } from './state.ts'

/** Gives the machine the outcomes of leaves that were finished before, until it wants leaves that were not. */
export function takeOverFinished(owned: OwnedFlow, events: FlowEvent[]): void {
  const { state, mailbox } = owned
  if (state.finished.size === 0) return
  let hasTaken = false
  for (;;) {
    const { known = [], rest = [] } = Object.groupBy(state.fresh, (leaf) =>
      isFinished(owned, leaf) ? 'known' : 'rest',
    )
    if (known.length === 0 && takeOverSlow(state, events)) continue
    if (known.length === 0) break
    state.fresh = rest
    for (const leaf of known) takeOver(owned, events, leaf)
    hasTaken = true
  }
  // The flow run may be over now.
  if (hasTaken && state.machine.outcome()) mailbox.put({ type: 'room' })
}

/** A leaf that was slow in an earlier flow run counts as slow at once, so that the queen's answer about it holds. */
function takeOverSlow(state: OwnedFlow['state'], events: FlowEvent[]): boolean {
  const leaf = state.fresh.find(({ id }) => state.foundSlow.has(unitOf(id)))
  if (!leaf) return false
  state.foundSlow.delete(unitOf(leaf.id))
  events.push({ kind: 'task.slow', data: { task_id: leaf.id, running_for: 0 } })
  const next = slow(state, leaf.id)
  state.fresh.push(...next)
  events.push(...takeUntold(state))
  return true
}

const isFinished = ({ state }: OwnedFlow, leaf: FlowLeaf): boolean =>
  state.finished.has(unitOf(leaf.id)) && !state.begun.has(attemptKey(leaf)) && isDecided(state, leaf)

/** A decision counts if the answer fits, or the answer to the same question, asked once more. Others are asked anew. */
function isDecided({ finished }: OwnedFlow['state'], { id, answer }: FlowLeaf): boolean {
  if (answer === null) return true
  return attemptsOf(unitOf(id)).some((unit) => {
    const known = finished.get(unit)
    return known !== undefined && fits(answer.name, known.value)
  })
}

function fits(name: string, value: unknown): boolean {
  if (name !== 'queen_plan') return name === 'queen_adjust' || readDecision('queen_review', value).ok
  const plan = readDecision(name, value)
  return plan.ok && planProblem(plan.decision.subtasks) === null
}

/** The values of a source are journalled in pages of this many. */
const ITEMS_PER_PAGE = 500

function takeOver({ state }: OwnedFlow, events: FlowEvent[], leaf: FlowLeaf): void {
  const finished = state.finished.get(unitOf(leaf.id))
  if (!finished) return
  const { value, tookMs, isPaged } = finished
  events.push(noteBegun(state, { leaf, worker: null, handover: null }))
  const isSource = isPaged && Array.isArray(value)
  if (isSource) events.push(...pagesOf(leaf.id, value))
  const result = isSource ? { result: null, on_record: 'pages' as const } : { result: value }
  const part = leaf.part === null || leaf.nodeId === null ? {} : { part: leaf.part }
  const about = { task_id: leaf.id, node_id: leaf.nodeId, attempt: leaf.attempt, duration: tookMs }
  events.push({ kind: 'task.completed', data: { ...about, ...result, ...part, taken_over: true } })
  // The list may be another one after that.
  const next = settle(state, leaf, { status: 'completed', value, tookMs })
  state.fresh.push(...next)
  events.push(...takeUntold(state))
}

function* pagesOf(leafId: string, values: readonly unknown[]): Generator<FlowEvent> {
  for (let from = 0; from < values.length || from === 0; from += ITEMS_PER_PAGE) {
    const items = values.slice(from, from + ITEMS_PER_PAGE)
    yield { kind: 'source.page', data: { task_id: leafId, from, items, is_last: from + items.length >= values.length } }
  }
}

/** This flow run and the flow runs that it resumes, the first one first. */
export async function chainOf(pool: Pool, flow: { id: string; resumed_from: string | null }): Promise<string[]> {
  const chain = [flow.id]
  for (let before = flow.resumed_from; before !== null; ) {
    chain.unshift(before)
    const { rows } = await pool.query<{ resumed_from: string | null }>(
      'select resumed_from from flow_runs where id = $1',
      [before],
    )
    before = rows[0]?.resumed_from ?? null
  }
  return chain
}

/** The leaves that the flow runs before this one have finished. */
export async function readFinished(
  pool: Pool,
  chain: readonly string[],
): Promise<{ finished: Map<string, FinishedLeaf>; foundSlow: Set<string> }> {
  const finished = new Map<string, FinishedLeaf>()
  const foundSlow = new Set<string>()
  for (const id of chain.slice(0, -1)) {
    const events = await readFlowJournal(pool, id)
    for (const [unit, leaf] of finishedIn(events)) finished.set(unit, leaf)
    for (const { kind, data } of events) if (kind === 'task.slow') foundSlow.add(unitOf(data.task_id))
  }
  return { finished, foundSlow }
}

function finishedIn(events: readonly RecordedEvent[]): Map<string, FinishedLeaf> {
  const finished = new Map<string, FinishedLeaf>()
  const pages = new Map<string, unknown[]>()
  const addTo = (leafId: string, items: readonly unknown[]): void => {
    const list = pages.get(leafId) ?? []
    for (const item of items) list.push(item)
    pages.set(leafId, list)
  }
  for (const { kind, data } of events) {
    if (kind === 'source.page') addTo(data.task_id, data.items)
    if (kind === 'items.completed')
      addTo(
        data.task_id,
        data.results.map(([, value]) => value),
      )
    if (kind !== 'task.completed') continue
    const value = data.on_record ? (pages.get(data.task_id) ?? []) : data.result
    finished.set(unitOf(data.task_id), { value, tookMs: data.duration, isPaged: data.on_record === 'pages' })
  }
  return finished
}

/** True if a pattern of the tree is tried again when it fails. A leaf that is tried again has no finished outcome. */
export function hasLives(node: unknown): boolean {
  if (Array.isArray(node)) return node.some(hasLives)
  if (!isRecord(node)) return false
  if (typeof node.type === 'string' && node.type !== 'task' && node.retry !== undefined) return true
  return Object.values(node).some(hasLives)
}
