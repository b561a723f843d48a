import { errorText } from '../../kernel/error-text.ts'
import type { Leaf } from '../../kernel/flow.ts'
import type { LeafOutcome } from '../machine/machine.ts'
import { MissingValue } from '../machine/render.ts'
import { asRecorded, type RecordedValue } from './as-recorded.ts'
import { bufferAt, type UnderWay } from './parts.ts'
import { earlierCalls, failuresOf, type Item } from './pipeline-state.ts'
import { startStageClock } from './stage-clock.ts'

type Result =
  | ({ status: 'completed' } & RecordedValue)
  /** `isHopeless`: each further attempt would fail as well. */
  | { status: 'failed'; error: string; attempt: number; isHopeless?: boolean }

/** The worker of a stage takes one item at a time, in order, and none before there is a place for the result. */
export async function workStage(run: UnderWay, stage: number): Promise<void> {
  const { recorder, parts } = run
  const before = bufferAt(run, stage)
  const after = bufferAt(run, stage + 1)
  const isLast = stage === parts.node.stages.length - 1
  for (;;) {
    const item = await before.next()
    if (item === null || run.isOver()) break
    await after.hold()
    if (run.isOver() || run.isDraining()) break
    before.take()
    const done = run.begin()
    const result = await attempt(run, stage, item)
    if (run.isOver()) break
    const { index } = item
    if (result.status === 'completed') {
      const { value, characters } = result
      // No item goes on before its result is committed.
      const pass = (): void => (isLast ? after.free() : after.put({ index, value }))
      recorder.note({ kind: 'completed', stage, index, value }, characters, pass)
    } else if (parts.node.on_error === 'skip') {
      recorder.note({ kind: 'skipped', stage, index, error: result.error }, result.error.length, after.free)
    } else {
      const { error, attempt } = result
      recorder.note({ kind: 'failed', stage, index, attempt, error, isRetried: false }, error.length)
      run.end(failureOf(parts.node.stages, { stage, index, error }))
    }
    done()
  }
  if (run.isOver() || run.isDraining()) return
  await recorder.committed()
  after.end()
}

export function failureOf(
  stages: readonly Leaf[],
  { stage, index, error }: { stage: number; index: number; error: string },
): LeafOutcome {
  const leaf = stages[stage]
  const name = leaf?.id ?? (leaf && 'agent' in leaf ? leaf.agent : leaf?.function)
  return { status: 'failed', error: `Stage ${stage} (${name}) failed at item ${index}: ${error}` }
}

/** Calls as often as the retries allow. A failure is on record before the next attempt, so no crash forgets it. */
async function attempt(run: UnderWay, stage: number, item: Item): Promise<Result> {
  const { parts, state, recorder } = run
  const { index } = item
  const retry = parts.node.stages[stage]?.retry
  for (let failures = failuresOf(state, stage, index); ; failures++) {
    const attempt = 1 + failures + earlierCalls(state, stage, index)
    const result = await callOnce(run, stage, item, { attempt, failures })
    const mayRetry = failures < (retry?.max_retries ?? 0) && !run.isDraining()
    if (result.status === 'completed' || result.isHopeless || run.isOver() || !mayRetry) return result
    const { error } = result
    recorder.note({ kind: 'failed', stage, index, attempt, error, isRetried: true }, error.length)
    await recorder.committed()
    if (!run.isOver()) await pause(run, retry?.backoff ?? 0)
    if (run.isOver()) return result
  }
}

/** Never throws. */
async function callOnce(
  run: UnderWay,
  stage: number,
  item: Item,
  { attempt, failures }: { attempt: number; failures: number },
): Promise<Result> {
  const { parts, stops } = run
  // Each call has a signal of its own: listeners that a function leaves on the signal go with it.
  const controller = new AbortController()
  const stop = (): void => controller.abort()
  stops.add(stop)
  const timeoutMs = parts.node.stages[stage]?.timeout
  const late = Promise.withResolvers<LeafOutcome>()
  const clock = startStageClock(timeoutMs, () => {
    late.resolve({ status: 'failed', error: `The stage took longer than ${timeoutMs} ms.` })
    controller.abort(new DOMException('The time of the stage was up.', 'TimeoutError'))
  })
  try {
    const place = `${stage}:${item.index}`
    const key = `${parts.keyScope}:${place}`
    const runKey = `${parts.flowRunId}:${parts.leafId}:${place}`
    const context = { key, runKey, attempt, failures, signal: controller.signal, clock }
    const called = parts.call(stage, parts.argumentOf(stage, item.value), context)
    const outcome = await (timeoutMs === undefined ? called : Promise.race([called, late.promise]))
    if (outcome.status === 'failed') return { ...outcome, attempt }
    return { status: 'completed', ...asRecorded(outcome.value) }
  } catch (error) {
    const isHopeless = error instanceof MissingValue && !error.mayCome
    return { status: 'failed', error: errorText(error), attempt, isHopeless }
  } finally {
    clock.end()
    stops.delete(stop)
  }
}

async function pause({ stops }: UnderWay, ms: number): Promise<void> {
  if (ms === 0) return
  await new Promise<void>((resolve) => {
    const stop = (): void => {
      clearTimeout(timer)
      resolve()
    }
    const timer = setTimeout(() => {
      stops.delete(stop)
      resolve()
    }, ms)
    stops.add(stop)
  })
}
