import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { PipelineProgress, PipelineSource, ReadRecord } from './parts.ts'
import type { PipelineEvent } from './pipeline-event.ts'
import { readOutputs } from './read-output.ts'
import { runPipeline } from './run-pipeline.ts'

const ITEMS = 100_000
const MEBIBYTE = 1_048_576

setFlagsFromString('--expose-gc')
const collectGarbage: () => void = runInNewContext('gc')

function heapInUse(): number {
  collectGarbage()
  return process.memoryUsage().heapUsed
}

/** A journal that keeps its events outside of the heap, as a database would. */
function createFarJournal() {
  const pages: Buffer[] = []
  const read: ReadRecord = async function* () {
    for (const page of pages) yield* JSON.parse(page.toString()) as PipelineEvent[] // the events as they were appended
  }
  const append = async (events: PipelineEvent[]): Promise<void> => {
    await new Promise(setImmediate)
    pages.push(Buffer.from(JSON.stringify(events)))
  }
  return { append, read }
}

const textOf = (index: number): string => `item ${index} `.padEnd(100, '.')
const source: PipelineSource = {
  open: async function* () {
    for (let index = 0; index < ITEMS; index++) yield { index, text: textOf(index) }
  },
}

test('100,000 items through three stages take no more memory than 10,000, also when taken up again', async () => {
  const journal = createFarJournal()
  const heap = new Map<number, number>()
  const abort = new AbortController()
  let calls = 0
  let progress: PipelineProgress | null = null
  const play = (signal: AbortSignal) =>
    runPipeline({
      flowRunId: 'run',
      keyScope: 'run:pipe',
      leafId: 'pipe',
      buffer: 100,
      source,
      ...journal,
      signal,
      node: {
        stages: ['parse', 'transform', 'validate'].map((name) => ({ type: 'task', function: name })),
        on_error: 'skip',
      },
      argumentOf: (_, item) => item,
      call: async (stage, argument, { signal, key }) => {
        calls++
        // The function never takes its listener away.
        signal.addEventListener('abort', () => key)
        const index = Number(key.split(':')[3])
        if (stage === 2 && (index + 1) % 10_000 === 0) heap.set(index + 1, heapInUse())
        if (stage === 2 && index === ITEMS / 2 + 1) abort.abort()
        if (stage === 1 && index % 1_000 === 0) return { status: 'failed', error: 'broken' }
        return { status: 'completed', value: argument }
      },
      onProgress: (told) => {
        progress = told
      },
    })
  assert.deepEqual(await play(abort.signal), { status: 'failed', error: 'aborted' })
  const outcome = await play(new AbortController().signal)
  assert.equal(outcome.status, 'completed')
  const skipped = ITEMS / 1_000
  const done = ITEMS - skipped
  // Only now is the output in memory as a whole.
  assert.equal('value' in outcome && Object(outcome.value).length, done)
  assert.deepEqual(progress, {
    items: { total: ITEMS, completed: done, failed: 0, skipped },
    stages: [ITEMS, done, done],
  })
  const needed = ITEMS * 2 + done
  assert.ok(calls >= needed && calls <= needed + 300, `${calls} calls`)
  const early = heap.get(10_000) ?? 0
  const late = heap.get(ITEMS) ?? Number.POSITIVE_INFINITY
  assert.ok(late < early * 1.5 + 4 * MEBIBYTE, `${early} bytes at 10,000 items, ${late} at ${ITEMS}`)

  let index = 0
  for await (const value of readOutputs(journal.read, 2)) {
    if (index % 1_000 === 0) index++
    assert.deepEqual(value, { index, text: textOf(index) })
    index++
  }
  assert.equal(index, ITEMS)
})
