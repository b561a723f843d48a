import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import {
  Annotation,
  type BaseCheckpointSaver,
  Command,
  END,
  interrupt,
  type LangGraphRunnableConfig,
  MemorySaver,
  Send,
  START,
  StateGraph,
} from '@langchain/langgraph'
import { type Checkpoint, type CheckpointTuple, emptyCheckpoint, uuid6 } from '@langchain/langgraph-checkpoint'
import { createTestDatabase, dumpRows } from '../../../test/kit/database.ts'
import { insertProject } from '../../../test/kit/runs.ts'
import { newId } from '../../kernel/id.ts'
import { silentLog } from '../../kernel/log.ts'
import { createCheckpoints } from './checkpoints.ts'

const { pool } = await createTestDatabase()
const checkpoints = createCheckpoints({ pool, log: silentLog })
const project = await insertProject(pool)
const saver = await checkpoints.saverFor(project)
const META = { source: 'loop', step: 0, parents: {} } as const

const threadOf = (config: Record<string, unknown>) => ({ configurable: { thread_id: newId(), ...config } })

const newest = (channels: Record<string, unknown>): Checkpoint => ({
  ...emptyCheckpoint(),
  id: uuid6(0),
  channel_values: channels,
  channel_versions: Object.fromEntries(Object.keys(channels).map((name) => [name, 1])),
})

async function all(tuples: AsyncIterable<CheckpointTuple>): Promise<CheckpointTuple[]> {
  const found: CheckpointTuple[] = []
  for await (const tuple of tuples) found.push(tuple)
  return found
}

const List = Annotation<string[]>({ reducer: (all, some) => all.concat(some), default: () => [] })

/** A graph with everything that LangGraph puts into checkpoints: parallel branches, sends, a question. */
function buildGraph(checkpointer: BaseCheckpointSaver) {
  const State = Annotation.Root({ words: List, said: List, answer: Annotation<string | undefined> })
  return new StateGraph(State)
    .addNode('left', async () => ({ words: ['left'] }))
    .addNode('right', async () => ({ words: ['right'], answer: undefined }))
    .addNode('say', async ({ word }: { word: string }) => ({ said: [`${word}!`] }))
    .addNode('ask', async ({ said }) => ({ answer: `${interrupt({ said })} ${interrupt('sure?')}` }))
    .addNode('last', async ({ answer }) => ({ words: [answer ?? ''] }))
    .addEdge(START, 'left')
    .addEdge(START, 'right')
    .addConditionalEdges('left', ({ words }) => words.map((word) => new Send('say', { word })))
    .addEdge('say', 'ask')
    .addEdge('ask', 'last')
    .addEdge('last', END)
    .compile({ checkpointer })
}

test('a graph with branches, sends and questions goes through the same states as over LangGraph’s own saver', async () => {
  const config = { ...threadOf({}), durability: 'sync' as const }
  const play = async (checkpointer: BaseCheckpointSaver) => {
    const graph = buildGraph(checkpointer)
    await graph.invoke({ words: ['first'] }, config)
    await graph.invoke(new Command({ resume: 'yes' }), config)
    const result = await graph.invoke(new Command({ resume: 'quite' }), config)
    const states: unknown[] = []
    for await (const { values, next, metadata, tasks } of graph.getStateHistory(config)) {
      const questions = tasks.flatMap((task) => task.interrupts.map((one) => one.value))
      states.push({ values, next, metadata, questions, names: tasks.map((task) => task.name) })
    }
    return { result, states }
  }
  const ours = await play(saver)
  assert.deepEqual(ours.result, {
    words: ['first', 'left', 'right', 'yes quite'],
    said: ['first!', 'left!'],
    answer: 'yes quite',
  })
  assert.deepEqual(ours, await play(new MemorySaver()))
})

test('two branches from one checkpoint keep their own values', async () => {
  const State = Annotation.Root({ note: Annotation<string>, by: Annotation<string> })
  const graph = new StateGraph(State)
    .addNode('write', async (_, config: LangGraphRunnableConfig) => ({ note: config.configurable?.note, by: 'write' }))
    .addNode('end', async () => ({}))
    .addEdge(START, 'write')
    .addEdge('write', 'end')
    .addEdge('end', END)
    .compile({ checkpointer: saver })
  const config = threadOf({ note: 'one' })
  await graph.invoke({ note: '' }, config)
  const history = await all(saver.list(config))
  const before = history.find((tuple) => tuple.metadata?.step === 0)
  await graph.invoke(null, { configurable: { ...before?.config.configurable, note: 'two' } })
  const written = (await all(saver.list(config))).filter(({ checkpoint }) => checkpoint.channel_values.by === 'write')
  const notes = written.map(({ checkpoint }) => checkpoint.channel_values.note)
  assert.deepEqual(notes, ['two', 'two', 'one', 'one'])
})

test('a value that cannot be kept fails the graph, and the error names its path', async () => {
  const State = Annotation.Root({ agent: Annotation<unknown> })
  const graph = new StateGraph(State)
    .addNode('work', async () => ({ agent: { scratchpad: { when: new Date() } } }))
    .addEdge(START, 'work')
    .compile({ checkpointer: saver })
  const config = { ...threadOf({}), durability: 'sync' as const }
  await assert.rejects(graph.invoke({ agent: null }, config), /write to agent\.scratchpad\.when is an instance of Date/)
  const tuple = await saver.getTuple(config)
  assert.equal(tuple?.checkpoint.channel_values.agent, null, 'the thread is unchanged')
})

test('a channel of a megabyte is stored once for all checkpoints in which it does not change', async () => {
  const text = 'äx\0"\\'.repeat(200_000)
  const State = Annotation.Root({ text: Annotation<string>, step: Annotation<number> })
  const next = async ({ step }: typeof State.State) => ({ step: step + 1 })
  const graph = new StateGraph(State)
    .addNode('one', next)
    .addNode('two', next)
    .addNode('three', next)
    .addEdge(START, 'one')
    .addEdge('one', 'two')
    .addEdge('two', 'three')
    .addEdge('three', END)
    .compile({ checkpointer: saver })
  const threads = [threadOf({}), threadOf({}), threadOf({})]
  const results = await Promise.all(threads.map((config) => graph.invoke({ text, step: 0 }, config)))
  for (const result of results) assert.deepEqual(result, { text, step: 3 })
  for (const config of threads) {
    for (const { checkpoint } of await all(saver.list(config, { filter: { source: 'loop' } }))) {
      assert.ok(checkpoint.channel_values.text === text)
    }
    const { rows } = await pool.query(
      `select count(*)::int as count from supervisor_channels where thread_id = $1 and channel = 'text'`,
      [config.configurable.thread_id],
    )
    assert.deepEqual(rows, [{ count: 1 }])
  }
})

test('no project sees another’s threads, also if they have the same names', async () => {
  const other = await checkpoints.saverFor(await insertProject(pool, 'another'))
  const config = threadOf({})
  const mine = await saver.put(config, newest({ a: 'mine' }), META, { a: 1 })
  await saver.putWrites(mine, [['a', 'mine']], 'task')
  assert.equal(await other.getTuple(config), undefined)
  assert.equal(await other.getTuple(mine), undefined)
  assert.deepEqual(await all(other.list({})), [])
  const theirs = { ...newest({ a: 'theirs' }), id: mine.configurable?.checkpoint_id }
  await other.put(config, theirs, META, { a: 1 })
  await other.putWrites(mine, [['a', 'theirs']], 'task')
  for (const [one, value] of [
    [saver, 'mine'],
    [other, 'theirs'],
  ] as const) {
    const tuple = await one.getTuple(config)
    assert.deepEqual(tuple?.checkpoint.channel_values, { a: value })
    assert.deepEqual(tuple?.pendingWrites, [['task', 'a', value]])
  }
  await other.deleteThread(config.configurable.thread_id)
  assert.equal(await other.getTuple(config), undefined)
  assert.deepEqual((await saver.getTuple(config))?.pendingWrites, [['task', 'a', 'mine']])
})

test('a config that names another project is refused, and changes nothing', async () => {
  const before = await dumpRows(pool)
  const config = threadOf({ project_id: newId(), checkpoint_id: 'x' })
  const refusal = /names another project/
  await assert.rejects(saver.put(config, newest({}), META, {}), refusal)
  await assert.rejects(saver.putWrites(config, [['a', 1]], 'task'), refusal)
  await assert.rejects(saver.getTuple(config), refusal)
  await assert.rejects(all(saver.list(config)), refusal)
  assert.deepEqual(await dumpRows(pool), before)
  assert.equal(await saver.getTuple(threadOf({ project_id: project })), undefined)
})

test('at each index the first write of a task counts; for errors and interrupts the last counts', async () => {
  const config = await saver.put(threadOf({}), newest({}), META, {})
  await saver.putWrites(
    config,
    [
      ['a', 1],
      ['b', 2],
    ],
    'task',
  )
  await saver.putWrites(
    config,
    [
      ['a', 3],
      ['b', 4],
      ['c', 5],
    ],
    'task',
  )
  await saver.putWrites(config, [['__interrupt__', 'first']], 'task')
  await Promise.all([
    saver.putWrites(config, [['__interrupt__', 'second']], 'task'),
    saver.putWrites(config, [['__interrupt__', 'last']], 'task'),
  ])
  const tuple = await saver.getTuple(config)
  assert.deepEqual(tuple?.pendingWrites, [
    ['task', '__interrupt__', 'last'],
    ['task', 'a', 1],
    ['task', 'b', 2],
    ['task', 'c', 5],
  ])
})

test('a long thread is listed newest first, whole or in part, with and without a filter', async () => {
  const thread = threadOf({})
  const ids: string[] = []
  for (let step = 0; step < 90; step++) {
    const checkpoint_ns = step % 3 === 0 ? 'child' : ''
    const config = { configurable: { ...thread.configurable, checkpoint_ns } }
    const checkpoint = newest({ step })
    await saver.put(config, checkpoint, { ...META, step, ...(step % 2 ? { mark: { odd: true } } : {}) }, { step: 1 })
    ids.unshift(checkpoint.id)
  }
  const idsOf = async (...args: Parameters<typeof saver.list>): Promise<string[]> =>
    (await all(saver.list(...args))).map((tuple) => tuple.checkpoint.id)
  assert.deepEqual(await idsOf(thread), ids)
  assert.deepEqual(
    (await idsOf({ configurable: {} })).slice(0, 90),
    ids,
    'a list over all threads has the last stored checkpoints first',
  )
  const root = { configurable: { ...thread.configurable, checkpoint_ns: '' } }
  assert.deepEqual(
    await idsOf(root),
    ids.filter((_, place) => (89 - place) % 3 !== 0),
  )
  assert.deepEqual(
    await idsOf(thread, { filter: { mark: { odd: true } } }),
    ids.filter((_, place) => place % 2 === 0),
  )
  assert.deepEqual(await idsOf(thread, { filter: { step: 7 } }), [ids[82]])
  assert.deepEqual(await idsOf(thread, { limit: 45 }), ids.slice(0, 45))
  assert.deepEqual(await idsOf(thread, { limit: 0 }), [])
  const before = { configurable: { ...thread.configurable, checkpoint_id: ids[10] } }
  assert.deepEqual(await idsOf(thread, { before, limit: 25 }), ids.slice(11, 36))
})

test('names that PostgreSQL cannot hold are refused, and the puts beside them are stored', async () => {
  const good = threadOf({})
  const bad = (config: Record<string, unknown>, channel = 'a') =>
    saver.put(threadOf(config), newest({ [channel]: 1 }), META, { [channel]: 1 })
  const outcomes = await Promise.allSettled([
    bad({ thread_id: 'x\0' }),
    bad({ thread_id: '' }),
    bad({ thread_id: 7 }),
    bad({}, '\ud800'),
    bad({ thread_id: randomBytes(4_000).toString('hex') }),
    saver.put(good, newest({ a: 1 }), META, { a: 1 }),
  ])
  assert.deepEqual(
    outcomes.map((outcome) => outcome.status),
    [...Array(5).fill('rejected'), 'fulfilled'],
  )
  assert.ok(await saver.getTuple(good))
})

test('simultaneous puts are one statement, and so are simultaneous reads', async () => {
  let statements = 0
  const counting = createCheckpoints({
    pool: new Proxy(pool, {
      get: (target, name) => {
        if (name !== 'query') return Reflect.get(target, name)
        return (...args: Parameters<typeof pool.query>) => {
          statements += 1
          return target.query(...args)
        }
      },
    }),
    log: silentLog,
  })
  const counted = await counting.saverFor(project)
  const threads = Array.from({ length: 50 }, () => threadOf({}))
  const puts = threads.map((config) => counted.put(config, newest({ a: 'x' }), META, { a: 1 }))
  await Promise.all(puts)
  assert.equal(statements, 1)
  const tuples = await Promise.all(threads.slice(0, 20).map((config) => counted.getTuple(config)))
  assert.equal(statements, 2)
  assert.ok(
    tuples.every((tuple, place) => tuple?.config.configurable?.thread_id === threads[place]?.configurable.thread_id),
  )
})
