import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import type { FunctionLeaf } from '../../kernel/flow.ts'
import type { LeafOutcome } from '../machine/machine.ts'
import type { PipelineParts, PipelineProgress, StageContext } from './parts.ts'
import type { PipelineEvent } from './pipeline-event.ts'
import { runPipeline } from './run-pipeline.ts'

type Work = (value: never, context: StageContext & { index: number }) => unknown

function createMemoryJournal() {
  const events: PipelineEvent[] = []
  const journal = {
    events,
    appends: 0,
    append: async (batch: PipelineEvent[]): Promise<void> => {
      journal.appends++
      await new Promise(setImmediate)
      events.push(...structuredClone(batch))
    },
    read: async function* (): AsyncGenerator<PipelineEvent> {
      yield* structuredClone(events)
    },
  }
  return journal
}
type MemoryJournal = ReturnType<typeof createMemoryJournal>

interface Options {
  stages: Record<string, Work>
  source?: PipelineParts['source']
  leaf?: Partial<FunctionLeaf>
  onError?: 'stop' | 'skip'
  buffer?: number
  journal?: MemoryJournal
  signal?: AbortSignal
  onProgress?: (progress: PipelineProgress) => void
}

/** A stage that throws fails its item, like a function of an app module. */
function play(items: unknown[], options: Options): Promise<LeafOutcome> {
  const { stages, source = { items }, leaf, onError = 'stop', buffer = 100, onProgress } = options
  const journal = options.journal ?? createMemoryJournal()
  const works = Object.values(stages)
  return runPipeline({
    flowRunId: 'run',
    keyScope: 'run:pipe',
    leafId: 'pipe',
    node: {
      stages: Object.keys(stages).map((name) => ({ type: 'task', function: name, ...leaf })),
      on_error: onError,
    },
    buffer,
    source,
    argumentOf: (_, item) => item,
    call: async (stage, argument, context) => {
      try {
        const index = Number(context.key.split(':')[3])
        return { status: 'completed', value: await works[stage]?.(argument as never, { ...context, index }) }
      } catch (error) {
        return { status: 'failed', error: error instanceof Error ? error.message : String(error) }
      }
    },
    append: journal.append,
    read: journal.read,
    signal: options.signal ?? new AbortController().signal,
    ...(onProgress ? { onProgress } : {}),
  })
}

const upTo = (count: number): number[] => Array.from({ length: count }, (_, index) => index)
const given = (outcome: LeafOutcome): unknown => (outcome.status === 'completed' ? outcome.value : outcome)
const same = (value: number): number => value
const ticks = async (count: number): Promise<void> => {
  for (let tick = 0; tick < count; tick++) await new Promise(setImmediate)
}
const failAt =
  (...at: number[]): Work =>
  (value: number, { index }) => {
    if (at.includes(index)) throw new Error('broken')
    return value
  }
async function* stream(items: Iterable<unknown>, onPull?: () => void): AsyncGenerator<unknown> {
  for (const item of items) {
    onPull?.()
    yield item
  }
}

test('Stream processing: data flows through three stages, each working on items as they arrive', async () => {
  const seen: string[] = []
  const third = Promise.withResolvers<void>()
  const outcome = await play(['1', '2', '3'], {
    stages: {
      parse: async (text: string, { index }) => {
        // The last item is parsed only after the first item was validated.
        if (index === 2) await third.promise
        seen.push(`parse ${index}`)
        return Number(text)
      },
      transform: (n: number) => ({ n: n * 10 }),
      validate: ({ n }: { n: number }, { index }) => {
        seen.push(`validate ${index}`)
        if (index === 0) third.resolve()
        return n
      },
    },
  })
  assert.deepEqual(outcome, { status: 'completed', value: [10, 20, 30] })
  assert.ok(seen.indexOf('validate 0') < seen.indexOf('parse 2'), seen.join())
})

test('Stream processing: a stage has one worker, and takes items in the order of the source', async () => {
  let atOnce = 0
  const order: number[] = []
  const slow: Work = async (value: number, { index }) => {
    assert.equal(++atOnce, 1)
    order.push(index)
    await ticks((index * 7) % 4)
    atOnce--
    return value
  }
  const outcome = await play(upTo(50), { stages: { same, slow } })
  assert.deepEqual(order, upTo(50))
  assert.deepEqual(given(outcome), upTo(50))
})

test('Backpressure handling: with a slow last stage no stage is ever more than its buffer ahead', async () => {
  for (const buffer of [1, 2, 5]) {
    const begun = [0, 0, 0]
    let pulled = 0
    const furthest = [0, 0, 0]
    const look = (): void => {
      const ahead = [pulled - (begun[0] ?? 0), (begun[0] ?? 0) - (begun[1] ?? 0), (begun[1] ?? 0) - (begun[2] ?? 0)]
      for (const [place, distance] of ahead.entries()) {
        assert.ok(distance <= buffer, `${distance} ahead with a buffer of ${buffer}`)
        furthest[place] = Math.max(furthest[place] ?? 0, distance)
      }
    }
    const begin = (stage: number): void => {
      begun[stage] = (begun[stage] ?? 0) + 1
      look()
    }
    const pull = (): void => {
      pulled++
      look()
    }
    const outcome = await play([], {
      source: { open: () => stream(upTo(60), pull) },
      buffer,
      stages: {
        parse: (value: number) => {
          begin(0)
          return value
        },
        transform: (value: number) => {
          begin(1)
          return value
        },
        validate: async (value: number) => {
          begin(2)
          await ticks(12)
          return value
        },
      },
    })
    assert.deepEqual(given(outcome), upTo(60))
    // The buffers were really full at times.
    assert.deepEqual(furthest, [buffer, buffer, buffer])
  }
})

test('Backpressure handling: a blocked stage goes on when there is room, and the source is held up too', async () => {
  const gate = Promise.withResolvers<void>()
  let pulled = 0
  const parts: Options = {
    source: { open: () => stream(upTo(1_000), () => pulled++) },
    buffer: 10,
    stages: {
      same,
      blocked: async (value: number) => {
        await gate.promise
        return value
      },
    },
  }
  const playing = play([], parts)
  let before = -1
  while (pulled !== before || pulled === 0) {
    before = pulled
    await ticks(20)
  }
  // One item is in the hands of the second stage, ten wait before it, and ten before the first.
  assert.equal(pulled, 21)
  gate.resolve()
  assert.deepEqual(given(await playing), upTo(1_000))
})

test('Pipeline error handling: skip leaves the item out and counts it, and later items are not affected', async () => {
  const journal = createMemoryJournal()
  const last: number[] = []
  let progress: PipelineProgress | null = null
  const outcome = await play(upTo(6), {
    journal,
    onError: 'skip',
    stages: {
      parse: same,
      transform: failAt(1, 4),
      validate: (value: number) => last.push(value) && value,
    },
    onProgress: (told) => {
      progress = told
    },
  })
  assert.deepEqual(outcome, { status: 'completed', value: [0, 2, 3, 5] })
  assert.deepEqual(last, [0, 2, 3, 5])
  assert.deepEqual(progress, { items: { total: 6, completed: 4, failed: 0, skipped: 2 }, stages: [6, 4, 4] })
  const skips = journal.events.flatMap((event) => (event.kind === 'items.skipped' ? [event.data] : []))
  assert.deepEqual(
    skips.flatMap(({ stage, errors }) => errors.map(([index, error]) => [stage, index, error])),
    [
      [1, 1, 'broken'],
      [1, 4, 'broken'],
    ],
  )
})

test('Pipeline error handling: stop ends the pipeline at the first failure, which names stage and item', async () => {
  const called: number[] = []
  let progress: PipelineProgress | null = null
  const journal = createMemoryJournal()
  const stages: Record<string, Work> = {
    parse: same,
    transform: (value: number, context) => {
      called.push(value)
      return failAt(3)(value as never, context)
    },
  }
  const onProgress = (told: PipelineProgress): void => {
    progress = told
  }
  const outcome = await play(upTo(500), { journal, stages, onProgress })
  assert.deepEqual(outcome, { status: 'failed', error: 'Stage 1 (transform) failed at item 3: broken' })
  assert.deepEqual(called, [0, 1, 2, 3])
  assert.equal(Object(progress).items.failed, 1)
  // An owner that takes the pipeline up before the flow learned of the failure calls no function again.
  assert.deepEqual(await play(upTo(500), { journal, stages }), outcome)
  assert.deepEqual(called, [0, 1, 2, 3])
})

test('a failure fires the signal of a stage at work, and does not wait for that stage', async () => {
  let signal: AbortSignal | null = null
  const outcome = await play([0, 1], {
    buffer: 1,
    stages: {
      fails: async (value: number, { index }) => {
        while (index === 1 && !signal) await ticks(1)
        return failAt(1)(value as never, { index } as never)
      },
      deaf: (_: number, context) => {
        signal = context.signal
        return new Promise(() => {})
      },
    },
  })
  assert.match(outcome.status === 'failed' ? outcome.error : '', /^Stage 0 \(fails\) failed at item 1/)
  assert.equal(Object(signal).aborted, true)
})

test('an item that fails is tried again as often as the stage says, with the same key', async () => {
  const calls: [string, number, number][] = []
  const flaky: Work = (value: number, { key, attempt, failures, index }) => {
    calls.push([key, attempt, failures])
    if (index === 1 && attempt < 3) throw new Error('not yet')
    return value
  }
  const leaf = { retry: { max_retries: 2, backoff: 1 } }
  assert.deepEqual(given(await play(upTo(3), { leaf, stages: { flaky } })), [0, 1, 2])
  assert.deepEqual(calls, [
    ['run:pipe:0:0', 1, 0],
    ['run:pipe:0:1', 1, 0],
    ['run:pipe:0:1', 2, 1],
    ['run:pipe:0:1', 3, 2],
    ['run:pipe:0:2', 1, 0],
  ])
  const once = { retry: { max_retries: 1, backoff: 0 } }
  const outcome = await play(upTo(3), { leaf: once, onError: 'skip', stages: { flaky } })
  assert.deepEqual(given(outcome), [0, 2])
})

test('a retry waits for its backoff, and an abort cuts the backoff short', async () => {
  mock.timers.enable({ apis: ['setTimeout'] })
  try {
    const abort = new AbortController()
    let calls = 0
    const leaf = { retry: { max_retries: 5, backoff: 60_000 } }
    const playing = play([0], {
      leaf,
      signal: abort.signal,
      stages: {
        fails: () => {
          calls++
          throw new Error('broken')
        },
      },
    })
    await ticks(20)
    assert.equal(calls, 1)
    mock.timers.tick(60_000)
    await ticks(20)
    assert.equal(calls, 2)
    abort.abort()
    assert.deepEqual(await playing, { status: 'failed', error: 'aborted' })
    assert.equal(calls, 2)
  } finally {
    mock.timers.reset()
  }
})

test('a stage that takes longer than its timeout fails the item, whether or not it heeds its signal', async () => {
  mock.timers.enable({ apis: ['setTimeout'] })
  try {
    let signal: AbortSignal | null = null
    const playing = play([0, 1], {
      leaf: { timeout: 1_000 },
      onError: 'skip',
      stages: {
        deaf: (value: number, context) => {
          if (value === 1) return value
          signal = context.signal
          return new Promise(() => {})
        },
      },
    })
    while (!signal) await ticks(1)
    mock.timers.tick(1_000)
    assert.deepEqual(await playing, { status: 'completed', value: [1] })
    assert.equal(Object(signal).aborted, true)
  } finally {
    mock.timers.reset()
  }
})

test('after an abort nothing is begun, results are kept, and work that ignores its signal is left behind', async () => {
  const journal = createMemoryJournal()
  const abort = new AbortController()
  let calls = 0
  const deaf: Work = (value: number) => {
    calls++
    if (value < 5) return value
    abort.abort()
    return new Promise(() => {})
  }
  const outcome = await play(upTo(100), { journal, signal: abort.signal, stages: { deaf } })
  assert.deepEqual(outcome, { status: 'failed', error: 'aborted' })
  assert.equal(calls, 6)
  const done = journal.events.flatMap((event) => (event.kind === 'items.completed' ? event.data.results : []))
  assert.deepEqual(
    done.map(([index]) => index),
    upTo(5),
  )
  const aborted = await play(upTo(100), { journal, signal: abort.signal, stages: { deaf } })
  assert.deepEqual([aborted, calls], [outcome, 6])
})

test('after an abort during an append no item is begun and nothing is appended', async () => {
  let opened = 0
  const open = () => {
    opened++
    return stream(upTo(10))
  }
  for (const source of [{ items: upTo(10) }, { open }]) {
    for (const appendAtAbort of [1, 2, 3, 4]) {
      const journal = createMemoryJournal()
      const abort = new AbortController()
      const { append } = journal
      journal.append = async (events) => {
        if (journal.appends + 1 === appendAtAbort) abort.abort()
        await append(events)
      }
      let callsAfter = 0
      const first: Work = (value: number) => {
        if (abort.signal.aborted) callsAfter++
        return value
      }
      const outcome = await play([], { journal, buffer: 1, signal: abort.signal, source, stages: { first } })
      assert.deepEqual(outcome, { status: 'failed', error: 'aborted' })
      const { appends } = journal
      await ticks(20)
      assert.deepEqual([callsAfter, journal.appends], [0, appends])
    }
  }
  // The source was not opened in the round in which the first append had not been committed.
  assert.equal(opened, 3)
})

test('an empty source of any kind gives an empty list', async () => {
  const fails: Work = () => assert.fail('there is nothing to call it with')
  const opens = [() => [], () => new Set(), () => stream([]), async () => []]
  for (const source of [{ items: [] }, ...opens.map((open) => ({ open }))]) {
    assert.deepEqual(await play([], { source, stages: { fails } }), { status: 'completed', value: [] })
  }
})

test('a function may give a list, a promise of one, an iterable or an async iterable', async () => {
  const opens = [() => upTo(250), async () => upTo(250), () => new Set(upTo(250)), () => stream(upTo(250))]
  for (const open of opens) {
    const journal = createMemoryJournal()
    const outcome = await play([], { journal, source: { open }, stages: { same } })
    assert.deepEqual(given(outcome), upTo(250))
    const pages = journal.events.flatMap((event) => (event.kind === 'source.page' ? [event.data] : []))
    assert.deepEqual(
      pages.flatMap((page) => page.items),
      upTo(250),
    )
    assert.ok(pages.length >= 3, `${pages.length} pages`)
    assert.deepEqual(
      pages.map((page) => page.is_last),
      pages.map((_, place) => place === pages.length - 1),
    )
  }
})

test('a source that throws midway, or gives no items, fails the pipeline and names the item', async () => {
  const broken = async function* (): AsyncGenerator<number> {
    yield 0
    yield 1
    throw new Error('the tap is dry')
  }
  const cases: [() => unknown, RegExp][] = [
    [broken, /^The source failed at item 2: the tap is dry$/],
    [() => Promise.reject(new Error('no tap')), /^The source failed at item 0: no tap$/],
    [() => 'text', /neither a list nor anything to iterate/],
    [() => ({ length: 1 }), /neither a list nor anything to iterate/],
    [() => [1, 10n], /^The source failed at item 1: it holds a bigint/],
  ]
  for (const [open, error] of cases) {
    const outcome = await play([], { source: { open }, onError: 'skip', stages: { same } })
    assert.match(outcome.status === 'failed' ? outcome.error : '', error)
  }
})

test('a generator that is not read to its end is closed', async () => {
  let isClosed = false
  const endless = function* (): Generator<number> {
    try {
      for (let n = 0; ; n++) yield n
    } finally {
      isClosed = true
    }
  }
  const outcome = await play([], { source: { open: endless }, stages: { fails: failAt(7) } })
  assert.deepEqual([outcome.status, isClosed], ['failed', true])
})

test('a later change to an object does not change the item that was made from it', async () => {
  const reused = { n: 0 }
  const source = function* (): Generator<unknown> {
    for (const n of upTo(5)) yield Object.assign(reused, { n })
  }
  const result = { n: 0 }
  const outcome = await play([], {
    source: { open: source },
    stages: { again: ({ n }: { n: number }) => Object.assign(result, { n }), same },
  })
  assert.deepEqual(
    given(outcome),
    upTo(5).map((n) => ({ n })),
  )
})

test('items that finish during an append are written by the next; an append holds about a mebibyte', async () => {
  const journal = createMemoryJournal()
  await play(upTo(1_000), { journal, stages: { same, again: same } })
  assert.ok(journal.appends < 60, `${journal.appends} appends`)
  const large = createMemoryJournal()
  const text = 'x'.repeat(300_000)
  await play(upTo(40), { journal: large, stages: { large: () => text } })
  const sizes = large.events.map((event) => JSON.stringify(event).length)
  assert.ok(Math.max(...sizes) < 1_100_000, `${Math.max(...sizes)} characters`)
})

test('an output over a mebibyte is whole, and is not journalled a second time', async () => {
  const text = 'x'.repeat(1_022)
  const stages = { text: () => text }
  // Each result is 1,024 characters of JSON and a comma; the brackets take the place of one comma and add one.
  assert.equal(Object(given(await play(upTo(1_022), { stages }))).length, 1_022)
  const large = await play(upTo(1_024), { stages })
  assert.equal(Object(given(large)).length, 1_024)
  assert.equal('onRecord' in large && large.onRecord, 'items')
})

test('progress counts committed items, and never goes back', async () => {
  const told: PipelineProgress[] = []
  const journal = createMemoryJournal()
  await play([], {
    journal,
    buffer: 5,
    source: { open: () => stream(upTo(20)) },
    stages: { same, again: same },
    onProgress: (progress) => told.push(progress),
  })
  assert.deepEqual(told[0], { items: { total: 0, completed: 0, failed: 0, skipped: 0 }, stages: [0, 0] })
  assert.deepEqual(told.at(-1), { items: { total: 20, completed: 20, failed: 0, skipped: 0 }, stages: [20, 20] })
  for (const [place, { items, stages }] of told.entries()) {
    const before = told[place - 1] ?? { items: { total: 0 }, stages: [0, 0] }
    assert.ok(items.total >= before.items.total)
    assert.ok(stages.every((done, stage) => done >= (before.stages[stage] ?? 0) && done <= items.total))
  }
})
