import { errorText } from '../../kernel/error-text.ts'
import { LARGEST_VALUE_BYTES } from '../../kernel/limits.ts'
import { toJsonResult } from '../../tools/json-result.ts'
import { asRecorded } from './as-recorded.ts'
import { bufferAt, type PipelineSource, type UnderWay } from './parts.ts'

/** Reads on after the last recorded item, never further ahead of the first stage than the buffer before it holds. */
export async function readSource(run: UnderWay): Promise<void> {
  const { source } = run.parts
  if (run.isOver()) return
  if ('items' in source) await readList(run, source.items)
  else if (!run.state.source.isAllRead) await readFunction(run, source.open)
  if (!run.isOver() && !run.isDraining()) bufferAt(run, 0).end()
}

async function readList(run: UnderWay, items: readonly unknown[]): Promise<void> {
  const buffer = bufferAt(run, 0)
  for (let index = run.state.stages[0]?.next ?? 0; index < items.length; index++) {
    await buffer.hold()
    if (run.isOver() || run.isDraining()) return
    buffer.put({ index, value: items[index] })
  }
}

type Open = Extract<PipelineSource, { open: unknown }>['open']
type AnyIterator = Iterator<unknown> | AsyncIterator<unknown>

async function readFunction(run: UnderWay, open: Open): Promise<void> {
  const buffer = bufferAt(run, 0)
  const stopReading = new AbortController()
  run.stops.add(() => stopReading.abort())
  let index = run.state.source.read
  try {
    const iterator = iteratorFrom(await open({ signal: stopReading.signal }), index)
    // A generator may hold a resource open, so it is closed, without waiting: the closing may never end.
    const close = (): void => void (async () => iterator.values.return?.())().catch(() => {})
    if (run.isOver()) return close()
    run.stops.add(close)
    const mayHaveMore = await passOver(run, iterator)
    while (mayHaveMore) {
      await buffer.hold()
      if (run.isOver() || run.isDraining()) return
      const step = await iterator.values.next()
      const value = step.done ? null : await step.value
      if (run.isOver() || run.isDraining()) return
      if (step.done) break
      note(run, index, value)
      index++
    }
    if (run.isOver()) return
    run.stops.delete(close)
    run.recorder.note({ kind: 'all_read', index }, 0)
    await run.recorder.committed()
  } catch (error) {
    run.end({ status: 'failed', error: `The source failed at item ${index}: ${errorText(error)}` })
  }
}

function note(run: UnderWay, index: number, given: unknown): void {
  const { value, characters } = asRecorded(asJson(given))
  run.recorder.note({ kind: 'read', index, value }, characters, () => bufferAt(run, 0).put({ index, value }))
}

/** A value of the source as JSON. Throws if it has none, or is too large. */
export function asJson(given: unknown): unknown {
  const json = toJsonResult(given, LARGEST_VALUE_BYTES)
  if (!json.ok) throw new Error(`it ${json.reason}.`)
  if ((json.rawBytes ?? 0) > LARGEST_VALUE_BYTES) throw new Error(`it has more than ${LARGEST_VALUE_BYTES} bytes.`)
  return json.value
}

/** A list is entered at the place `from`. Of any other iterable the recorded items are passed over. */
export function iteratorFrom(given: unknown, from: number): { values: AnyIterator; known: number } {
  if (Array.isArray(given)) return { values: rest(given, from), known: 0 }
  if (given !== null && typeof given === 'object') {
    const iterable = given as Partial<AsyncIterable<unknown> & Iterable<unknown>> // its kind is asked below
    const values = iterable[Symbol.asyncIterator]?.() ?? iterable[Symbol.iterator]?.()
    if (values) return { values, known: from }
  }
  throw new Error('it gave neither a list nor anything to iterate.')
}

function* rest(items: readonly unknown[], from: number): Generator<unknown> {
  for (let index = from; index < items.length; index++) yield items[index]
}

/** Returns false if the source has no more items than those on record. */
async function passOver(run: UnderWay, { values, known }: ReturnType<typeof iteratorFrom>): Promise<boolean> {
  for (let passed = 0; passed < known && !run.isOver(); passed++) if ((await values.next()).done) return false
  return true
}
