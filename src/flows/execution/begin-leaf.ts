import { isUnavailable } from '../../db/failures.ts'
import { errorText } from '../../kernel/error-text.ts'
import type { FunctionLeaf } from '../../kernel/flow.ts'
import { jsonSize } from '../../kernel/json-size.ts'
import type { FunctionContext, WhileIdle } from '../definition/function-context.ts'
import type { FlowLeaf } from '../machine/flow-leaf.ts'
import type { LeafOutcome } from '../machine/machine.ts'
import { TooLarge } from '../machine/render.ts'
import type { PipelineEvent } from '../pipeline/pipeline-event.ts'
import { ENDING_WAIT_MS, isAgain, isAgentLeaf, startAgentLeaves } from './agent-leaves.ts'
import { callFunction } from './call-function.ts'
import { handOut } from './handouts.ts'
import { functionKey, leafScope } from './leaf-scope.ts'
import { openSource } from './open-source.ts'
import { appendToFlow, FlowLost, type OwnedFlow } from './owned-flow.ts'
import { readItems, readPages } from './read-items.ts'
import { runStream } from './run-stream.ts'
import { progressOf } from './state.ts'
import { cancelLeafRuns } from './stop-leaves.ts'
import { createTurns } from './turns.ts'
import { writeInBatches } from './write-in-batches.ts'

/**
 * Starts leaves that have begun by the journal; outcomes come to the mailbox. A leaf's problem fails that leaf alone.
 * Rejects only if the database cannot be reached.
 */
export async function beginAll(owned: OwnedFlow, leaves: readonly FlowLeaf[]): Promise<void> {
  const { deps, flow, mailbox, local } = owned
  const startedAtMs = Date.now()
  const settled = (leaf: FlowLeaf, outcome: LeafOutcome): void =>
    mailbox.put({ type: 'settled', leaf, outcome, startedAtMs })
  const fail = (leaf: FlowLeaf, error: string): void => settled(leaf, { status: 'failed', error })
  const agents = leaves.filter(isAgentLeaf)
  if (agents.length > 0) {
    const { problems, later } = await startAgentLeaves(deps.pool, owned.leafRuns, agents)
    for (const { leaf, problem } of problems) {
      // Some runs of the leaf may be under way.
      if (leaf.isEach) await cancelLeafRuns(deps, flow, [leaf])
      fail(leaf, problem)
    }
    for (const leaf of later) {
      owned.ending.add(leaf.id)
      owned.after(ENDING_WAIT_MS, { type: 'begin', leaf })
    }
    // An earlier run may have done the work of a leaf already.
    if (agents.some((leaf) => isAgain(leaf, owned.leafRuns))) mailbox.put({ type: 'news' })
    deps.onReady()
  }
  const functions = leaves.filter((leaf) => isFunctionLeaf(leaf) && !local.has(leaf.id))
  if (functions.length > 0) await handOutAll(owned, functions, fail)
  const turn = createTurns()
  for (const leaf of leaves) {
    try {
      if (isStream(leaf)) await beginStream(owned, leaf, (outcome) => settled(leaf, outcome))
      else if (leaf.isSource) beginSource(owned, leaf, (outcome) => settled(leaf, outcome))
      else if (local.has(leaf.id)) callHere(owned, leaf, (outcome) => settled(leaf, outcome))
    } catch (error) {
      rethrowUnlessLeafFault(error)
      releaseSlot(owned, leaf.id)
      fail(leaf, errorText(error))
    }
    const pause = turn()
    if (pause) await pause
  }
}

/** Rethrows a failure of the database, or the loss of the flow run: these are no failures of a leaf. */
function rethrowUnlessLeafFault(error: unknown): void {
  if (error instanceof FlowLost || isUnavailable(error)) throw error
}

/** The most characters of JSON that are handed to other processes in one go. */
const MOST_HANDED_OUT = 4_194_304
/** The most characters of JSON that one leaf with several calls may be handed. */
const LARGEST_HANDOUT = 64 * 1_048_576

async function handOutAll(
  { deps, flow, handedOut, leafRuns }: OwnedFlow,
  leaves: readonly FlowLeaf[],
  fail: (leaf: FlowLeaf, error: string) => void,
): Promise<void> {
  const of = { flowRunId: flow.id, projectId: flow.project_id }
  await writeInBatches(leaves, {
    mostCharacters: MOST_HANDED_OUT,
    entryOf: (leaf) => {
      const { id, attempt, node, isEach } = leaf
      const argument = isEach ? [...argumentsOf(leaf)] : leaf.argumentOf(0)
      const size = jsonSize(argument, { bytes: LARGEST_HANDOUT, nodes: Number.POSITIVE_INFINITY })
      if (size.bytes > LARGEST_HANDOUT)
        throw new TooLarge(`The function would be handed more than ${LARGEST_HANDOUT} bytes.`)
      const scope = leafScope(leafRuns.scope, id)
      return { entry: { id, attempt, node, isEach, argument, scope }, characters: size.bytes }
    },
    write: async (handouts) => {
      await handOut(deps.pool, of, handouts)
      for (const { id } of handouts) handedOut.add(id)
    },
    refuse: (leaf, error) => fail(leaf, errorText(error)),
  })
}

/** Yields the arguments one by one: all of them together may not fit the memory. */
function* argumentsOf({ calls, argumentOf }: FlowLeaf): Generator<unknown> {
  for (let place = 0; place < calls; place++) yield argumentOf(place)
}

/** Throws if the argument of the leaf cannot be rendered. */
function callHere(owned: OwnedFlow, leaf: FlowLeaf, settled: (outcome: LeafOutcome) => void): void {
  const { deps, flow, signals } = owned
  const { id, attempt, node, isEach } = leaf
  const name = 'function' in node ? node.function : ''
  const run = deps.functions.get(name)
  if (!run) throw new Error(`There is no function called ${name}.`)
  const argument = isEach ? argumentsOf(leaf) : leaf.argumentOf(0)
  const { signal, own } = signalFor(owned, id)
  const whileIdle = createWhileIdle(owned, id, signal)
  const of = { flowRunId: flow.id, projectId: flow.project_id, log: deps.log, whileIdle }
  const scope = leafScope(owned.leafRuns.scope, id)
  void callFunction({ leaf: { id, attempt, node, isEach, argument, scope }, run, signal, ...of }).then((outcome) => {
    if (signals.get(id) === own) signals.delete(id)
    releaseSlot(owned, id)
    settled(outcome)
  })
}

/** A leaf that comes back takes a slot even if none is free: leaves that would begin next wait a little longer. */
function createWhileIdle(owned: OwnedFlow, leafId: string, signal: AbortSignal): WhileIdle {
  const { deps, flow, local } = owned
  return async (wait) => {
    const hadSlot = local.has(leafId)
    releaseSlot(owned, leafId)
    try {
      return await wait()
    } finally {
      if (hadSlot && !signal.aborted) {
        deps.slots.take(flow.project_id)
        local.add(leafId)
      }
    }
  }
}

/** Does nothing if the leaf has no slot. */
export function releaseSlot({ deps, flow, local }: Pick<OwnedFlow, 'deps' | 'flow' | 'local'>, leafId: string): void {
  if (local.delete(leafId)) deps.slots.release(flow.project_id)
}

/** The signal fires when the flow run is stopped, or this leaf alone. */
function signalFor({ signals }: OwnedFlow, leafId: string): { signal: AbortSignal; own: AbortController } {
  const own = new AbortController()
  signals.set(leafId, own)
  return { signal: own.signal, own }
}

type StreamLeaf = FlowLeaf & { stream: NonNullable<FlowLeaf['stream']> }
const isStream = (leaf: FlowLeaf): leaf is StreamLeaf => leaf.stream !== null

async function beginStream(owned: OwnedFlow, leaf: StreamLeaf, settled: (outcome: LeafOutcome) => void): Promise<void> {
  const { deps, flow, state, mailbox, waits } = owned
  const { pool, log, functions, cancelRuns, onReady } = deps
  const buffer = await deps.bufferOf(flow.project_id)
  const { signal } = signalFor(owned, leaf.id)
  const write = async (events: PipelineEvent[]): Promise<void> => {
    const isCancelled = await appendToFlow(owned, events, { progress: progressOf(state, false) })
    if (isCancelled) mailbox.put({ type: 'stop', as: 'cancelled' })
  }
  runStream({
    leaf,
    ...owned.leafRuns,
    pool,
    log,
    functions,
    buffer,
    waits,
    signal,
    draining: owned.draining.signal,
    append: write,
    cancelRuns,
    onReady,
    onProgress: ({ items }) => void state.items.set(leaf.id, items),
  }).then(settled, (error: unknown) => failOrLapse(owned, error, settled))
}

/** Reads a source, which may give more items than one commit should hold, and may give them one by one. */
function beginSource(owned: OwnedFlow, leaf: FlowLeaf, settled: (outcome: LeafOutcome) => void): void {
  const { deps, flow } = owned
  const name = 'function' in leaf.node ? leaf.node.function : ''
  const run = deps.functions.get(name)
  if (!run) {
    settled({ status: 'failed', error: `There is no function called ${name}.` })
    return
  }
  const argument = leaf.argumentOf(0)
  const { signal } = signalFor(owned, leaf.id)
  const scope = leafScope(owned.leafRuns.scope, leaf.id)
  const context: FunctionContext = {
    signal,
    key: functionKey(scope, name, argument),
    scope,
    attempt: leaf.attempt,
    run_id: flow.id,
    project_id: flow.project_id,
    leafId: leaf.id,
    log: deps.log,
    emit: () => {},
  }
  const read = async (): Promise<LeafOutcome> =>
    readItems({
      open: () => openSource({ name, run }, argument, context),
      known: await readPages(deps.pool, flow.id, leaf.id),
      signal: AbortSignal.any([signal, owned.draining.signal]),
      write: async ({ from, items, isLast }) => {
        const data = { task_id: leaf.id, from, items, is_last: isLast }
        await appendToFlow(owned, [{ kind: 'source.page', data }], {})
      },
    })
  read().then(settled, (error: unknown) => failOrLapse(owned, error, settled))
}

/** If the journal could not be written, the flow's next owner goes on. Any other failure would only happen again. */
function failOrLapse(
  { deps, flow, mailbox }: OwnedFlow,
  error: unknown,
  settled: (outcome: LeafOutcome) => void,
): void {
  try {
    rethrowUnlessLeafFault(error)
    settled({ status: 'failed', error: errorText(error) })
  } catch {
    deps.log.debug({ flow_run_id: flow.id, err: error }, 'a leaf could not be written')
    mailbox.put({ type: 'lapse' })
  }
}

/** True for a plain call of a function, in this process or another. */
export const isFunctionLeaf = (leaf: FlowLeaf): leaf is FlowLeaf & { node: FunctionLeaf } =>
  'function' in leaf.node && leaf.stream === null && !leaf.isSource
