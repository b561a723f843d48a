// Pipelines whose owner dies at random and which another owner takes up, until all items are done.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { howMany } from '../../../test/kit/how-many.ts'
import type { LeafOutcome } from '../machine/machine.ts'
import type { PipelineParts, PipelineSource } from './parts.ts'
import type { PipelineEvent } from './pipeline-event.ts'
import { runPipeline } from './run-pipeline.ts'

const SEEDS = howMany(50, 2_000)

class Crash extends Error {}

/** After `left` more appends the owner dies at the next append: before it is written, or after. */
function createMortalJournal() {
  const events: PipelineEvent[] = []
  const journal = {
    events,
    left: Number.POSITIVE_INFINITY,
    isWrittenBeforeDeath: false,
    append: async (batch: PipelineEvent[]): Promise<void> => {
      await new Promise(setImmediate)
      const isLast = --journal.left < 0
      if (!isLast || journal.isWrittenBeforeDeath) events.push(...structuredClone(batch))
      if (isLast) throw new Crash()
    },
    read: async function* (): AsyncGenerator<PipelineEvent> {
      yield* structuredClone(events)
    },
  }
  return journal
}

const upTo = (count: number): number[] => Array.from({ length: count }, (_, index) => index)
const given = (outcome: LeafOutcome): unknown => (outcome.status === 'completed' ? outcome.value : outcome)

function partsOf(journal: ReturnType<typeof createMortalJournal>, more: Partial<PipelineParts>): PipelineParts {
  return {
    flowRunId: 'run',
    keyScope: 'run:pipe',
    leafId: 'pipe',
    buffer: 3,
    source: { items: [] },
    node: { stages: [{ type: 'task', function: 'same' }], on_error: 'stop' },
    argumentOf: (_, item) => item,
    call: async (_, value) => ({ status: 'completed', value }),
    append: journal.append,
    read: journal.read,
    signal: new AbortController().signal,
    ...more,
  }
}

/** Null: the owner died. */
async function live(parts: PipelineParts): Promise<LeafOutcome | null> {
  try {
    return await runPipeline(parts)
  } catch (error) {
    if (error instanceof Crash) return null
    throw error
  }
}

const finishedIn = (events: readonly PipelineEvent[]): Set<string> =>
  new Set(
    events.flatMap((event) => {
      if (event.kind === 'items.completed') return event.data.results.map(([index]) => `${event.data.stage}:${index}`)
      return event.kind === 'items.skipped' ? event.data.errors.map(([index]) => `${event.data.stage}:${index}`) : []
    }),
  )

/** Gives the same numbers for the same seed (mulberry32). */
function createRandom(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return (((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296) * below
  }
}

async function* stream(items: readonly unknown[]): AsyncGenerator<unknown> {
  yield* items
}

for (const seed of upTo(SEEDS)) {
  test(`random crashes repeat nothing that is on record and change no output (seed ${seed})`, async () => {
    const random = createRandom(seed + 1)
    const below = (count: number): number => Math.floor(random(count))
    const count = below(60)
    const stageCount = 1 + below(4)
    const maxRetries = below(3)
    const buffer = 1 + below(8)
    // The number of times each item fails in each stage, by place, before it would succeed.
    const fails = upTo(stageCount).map(() => upTo(count).map(() => (random(1) < 0.15 ? 1 + below(4) : 0)))
    const isSkipped = (stage: number, index: number): boolean => (fails[stage]?.[index] ?? 0) > maxRetries
    const kept = upTo(count).filter((index) => !upTo(stageCount).some((stage) => isSkipped(stage, index)))
    const sources: PipelineSource[] = [
      { items: upTo(count) },
      { open: () => upTo(count) },
      { open: () => stream(upTo(count)) },
      { open: () => new Set(upTo(count)) },
    ]

    const journal = createMortalJournal()
    const attempts = new Map<string, number>()
    let lives = 0
    let outcome: LeafOutcome | null = null
    while (outcome === null) {
      lives++
      assert.ok(lives < 1_000, 'the pipeline makes no progress')
      // Each owner lives for enough appends to make some progress.
      journal.left = 2 + below(12)
      journal.isWrittenBeforeDeath = random(1) < 0.5
      const parts = partsOf(journal, {
        buffer,
        node: {
          stages: upTo(stageCount).map((stage) => ({
            type: 'task',
            function: `stage ${stage}`,
            retry: { max_retries: maxRetries, backoff: 0 },
          })),
          on_error: 'skip',
        },
        source: sources[seed % sources.length] ?? { items: [] },
        call: async (stage, value, { key, attempt, failures }) => {
          const index = Number(key.split(':')[3])
          assert.equal(key, `run:pipe:${stage}:${index}`)
          assert.ok(!finishedIn(journal.events).has(`${stage}:${index}`), `${key} is on record, and called again`)
          if (stage > 0) assert.ok(finishedIn(journal.events).has(`${stage - 1}:${index}`), `${key} came too soon`)
          assert.equal(value, index * 3 ** stage, 'the stage got the result of the stage before')
          assert.ok(attempt > (attempts.get(key) ?? 0), `${key} attempt ${attempt} was made before`)
          assert.ok(failures <= maxRetries && attempt <= lives + failures)
          attempts.set(key, attempt)
          for (let tick = below(3); tick > 0; tick--) await new Promise(setImmediate)
          if (failures < (fails[stage]?.[index] ?? 0)) return { status: 'failed', error: 'not yet' }
          return { status: 'completed', value: (value as number) * 3 } // asserted above
        },
      })
      // An assertion that throws in a call would count as a failure of the item.
      const problems: unknown[] = []
      const { call } = parts
      parts.call = (...args) =>
        call(...args).catch((error: unknown) => {
          problems.push(error)
          throw error
        })
      outcome = await live(parts)
      assert.deepEqual(problems, [])
    }
    assert.deepEqual(
      given(outcome),
      kept.map((index) => index * 3 ** stageCount),
    )
    if (count > 30) assert.ok(lives > 1, 'nobody died')
  })
}

test('a call that was under way at a crash is made again with the same key and a higher attempt', async () => {
  const journal = createMortalJournal()
  const calls: [string, number][] = []
  for (const left of [1, 1, Number.POSITIVE_INFINITY]) {
    journal.left = left
    const parts = partsOf(journal, {
      source: { items: ['a'] },
      call: async (_, value, { key, attempt }) => {
        calls.push([key, attempt])
        return { status: 'completed', value }
      },
    })
    const outcome = await live(parts)
    if (outcome) assert.deepEqual(given(outcome), ['a'])
  }
  assert.deepEqual(calls, [
    ['run:pipe:0:0', 1],
    ['run:pipe:0:0', 2],
    ['run:pipe:0:0', 3],
  ])
})

test('a failure counts as an attempt also after a crash; a crash does not', async () => {
  const journal = createMortalJournal()
  const calls: [number, number][] = []
  // Each owner puts one failure on record, and dies at the next append.
  for (let life = 1; life <= 4; life++) {
    journal.left = 2
    const parts = partsOf(journal, {
      source: { items: ['a'] },
      node: {
        stages: [{ type: 'task', function: 'fails', retry: { max_retries: 2, backoff: 0 } }],
        on_error: 'stop',
      },
      call: async (_stage, _value, { attempt, failures }) => {
        calls.push([attempt, failures])
        return { status: 'failed', error: 'broken' }
      },
    })
    const outcome = await live(parts)
    if (outcome) assert.deepEqual(outcome, { status: 'failed', error: 'Stage 0 (fails) failed at item 0: broken' })
    else assert.ok(life < 3)
  }
  const failed = calls.map(([, failures]) => failures)
  assert.deepEqual(failed, [0, 1, 1, 2, 2])
  const attempts = calls.map(([attempt]) => attempt)
  assert.deepEqual(attempts, [1, 2, 3, 4, 5])
})

test('a resumed pipeline reads on after the last recorded item, even if the source gives other items now', async () => {
  const journal = createMortalJournal()
  let outcome: LeafOutcome | null = null
  for (let life = 1; outcome === null; life++) {
    journal.left = life < 4 ? 4 : Number.POSITIVE_INFINITY
    const open = () => stream(upTo(40).map((index) => ({ life, index })))
    outcome = await live(partsOf(journal, { source: { open } }))
  }
  const items = given(outcome) as { life: number; index: number }[] // as the source made them
  assert.deepEqual(
    items.map((item) => item.index),
    upTo(40),
  )
  const lives = items.map((item) => item.life)
  assert.deepEqual(lives, lives.toSorted())
  assert.deepEqual([...new Set(lives)], [1, 2, 3, 4])
})

test('a source that is all on record is not opened again', async () => {
  const journal = createMortalJournal()
  let opened = 0
  const open = () => {
    opened++
    return upTo(3)
  }
  for (const _ of [1, 2]) assert.deepEqual(given(await runPipeline(partsOf(journal, { source: { open } }))), upTo(3))
  assert.equal(opened, 1)
})

test('a refused append ends the pipeline: it rejects with that error and begins nothing more', async () => {
  const journal = createMortalJournal()
  journal.left = 2
  let calls = 0
  let signal: AbortSignal | null = null
  const parts = partsOf(journal, {
    source: { items: upTo(100) },
    node: {
      stages: [
        { type: 'task', function: 'same' },
        { type: 'task', function: 'deaf' },
      ],
      on_error: 'stop',
    },
    call: async (stage, value, context) => {
      calls++
      if (stage === 0 || value === 0) return { status: 'completed', value }
      signal = context.signal
      return new Promise(() => {})
    },
  })
  await assert.rejects(runPipeline(parts), Crash)
  const before = calls
  for (let tick = 0; tick < 20; tick++) await new Promise(setImmediate)
  assert.equal(calls, before)
  assert.equal(Object(signal).aborted, true)
})
