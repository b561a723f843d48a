import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestDatabase } from '../../test/kit/database.ts'
import { insertProject, insertRuns } from '../../test/kit/runs.ts'
import type { Db } from '../db/pool.ts'
import { inTransaction } from '../db/transaction.ts'
import { newId } from '../kernel/id.ts'
import { silentLog } from '../kernel/log.ts'
import { createJournal } from './append.ts'
import type { StoredEvent } from './entries.ts'
import type { Appended } from './journal.ts'
import { readEvents } from './read.ts'

const { pool } = await createTestDatabase()
const projectId = await insertProject(pool)
const journal = createJournal({ db: pool, log: silentLog })

interface EventRow {
  seq: number
  kind: string
  data: Record<string, unknown>
}

const eventsOf = (runId: string): Promise<EventRow[]> => readEvents(pool, runId)

const rowOf = async (runId: string) => (await pool.query('select * from agent_runs where id = $1', [runId])).rows[0]

const runs = (count = 1): Promise<string[]> => insertRuns(pool, projectId, count)

/** The answer without its time, which is the database's. */
const plain = (answer: Appended) =>
  answer.status === 'written' ? { status: answer.status, firstSeq: answer.firstSeq } : answer

const note = (text: string) => ({ kind: 'test.noted', data: { text } })

test('events are numbered from 1 without a gap, in the order they were handed in', async () => {
  const [runId = ''] = await runs()
  const answers = await Promise.all([
    journal.append({ runId, fence: 1, events: [note('a'), note('b')] }),
    journal.append({ runId, fence: 1, events: [note('c')] }),
    journal.append({ runId, fence: null, events: [note('d'), note('e')] }),
  ])
  assert.deepEqual(answers.map(plain), [
    { status: 'written', firstSeq: 1 },
    { status: 'written', firstSeq: 3 },
    { status: 'written', firstSeq: 4 },
  ])
  const events = await eventsOf(runId)
  assert.deepEqual(
    events.map((event) => [event.seq, event.data.text]),
    [
      [1, 'a'],
      [2, 'b'],
      [3, 'c'],
      [4, 'd'],
      [5, 'e'],
    ],
  )
  assert.equal((await rowOf(runId)).last_seq, 5)
})

test('appends that many runs make at once go out in a few statements', async () => {
  const ids = await runs(200)
  let statements = 0
  const counted: Db = {
    query: (sql, values) => {
      statements++
      return pool.query(sql as string, values as unknown[])
    },
  }
  const counting = createJournal({ db: counted, log: silentLog })
  await Promise.all(ids.map((runId) => counting.append({ runId, fence: 1, events: [note('x')] })))
  assert.ok(statements <= 2, `${statements}`)
  for (const runId of ids.slice(0, 5)) assert.equal((await eventsOf(runId)).length, 1)
})

test('an append with an old fence writes nothing, reports this, and does not delay other appends', async () => {
  const [mine = '', taken = ''] = await runs(2)
  await pool.query('update agent_runs set fence = 2 where id = $1', [taken])
  const answers = await Promise.all([
    journal.append({
      runId: taken,
      fence: 1,
      events: [note('late')],
      change: { set: { status: 'completed', ended: true } },
    }),
    journal.append({ runId: mine, fence: 1, events: [note('in time')] }),
    journal.append({ runId: newId(), fence: 1, events: [note('nowhere')] }),
  ])
  assert.deepEqual(answers.map(plain), [{ status: 'lost' }, { status: 'written', firstSeq: 1 }, { status: 'lost' }])
  assert.equal((await eventsOf(taken)).length, 0)
  assert.equal((await rowOf(taken)).status, 'running')
  assert.equal((await journal.append({ runId: taken, fence: 2, events: [note('new owner')] })).status, 'written')
  assert.equal((await journal.append({ runId: taken, fence: null, events: [note('from outside')] })).status, 'written')
})

test('the row is the projection of the journal: counts are added, the rest is set, the end is stamped', async () => {
  const [runId = ''] = await runs()
  const step = { steps: 1, inputTokens: 10, outputTokens: 5, costUsd: 0.25 }
  await journal.append({ runId, fence: 1, events: [note('one')], change: step })
  await journal.append({ runId, fence: 1, events: [note('two')], change: { ...step, set: { usage_estimated: true } } })
  await journal.append({
    runId,
    fence: 1,
    events: [note('wait')],
    change: { set: { status: 'paused', pause_reason: 'human', waits_for: 'human', release: true } },
  })
  const waiting = await rowOf(runId)
  assert.equal(waiting.pause_reason, 'human')
  assert.equal(waiting.waits_for, 'human')
  await journal.append({
    runId,
    fence: null,
    events: [note('answer')],
    change: { set: { status: 'running', pause_reason: null, waits_for: null, release: true, ready_in_ms: 0 } },
  })
  const ready = await rowOf(runId)
  assert.equal(ready.waits_for, null)
  assert.ok(ready.ready_at)
  await journal.append({
    runId,
    fence: 1,
    events: [note('end')],
    change: { set: { status: 'completed', summary: 'done', ended: true } },
  })
  const ended = await rowOf(runId)
  assert.equal(ended.status, 'completed')
  assert.equal(ended.step_count, 2)
  assert.equal(ended.input_tokens, 20)
  assert.equal(ended.output_tokens, 10)
  assert.equal(ended.cost_usd, 0.5)
  assert.equal(ended.usage_estimated, true)
  assert.equal(ended.pause_reason, null)
  assert.equal(ended.summary, 'done')
  assert.ok(ended.completed_at)
  assert.ok(ended.duration >= 0)
  assert.equal(ended.owner, null)
  assert.equal(ended.ready_at, null)
})

test('a run that waited for months ends like any other', async () => {
  const [runId = ''] = await runs()
  await pool.query(`update agent_runs set started_at = started_at - interval '90 days' where id = $1`, [runId])
  const end = { status: 'completed', summary: 'Done.', ended: true } as const
  const answer = await journal.append({ runId, fence: 1, events: [note('end')], change: { set: end } })
  assert.equal(answer.status, 'written')
  // The column holds 24 days at most.
  assert.equal((await rowOf(runId)).duration, 2 ** 31 - 1)
})

test('two processes that append to the same runs at once leave every journal without gap or repeat', async () => {
  const ids = await runs(20)
  const journals = [journal, createJournal({ db: pool, log: silentLog }), createJournal({ db: pool, log: silentLog })]
  const writes = ids.flatMap((runId, index) =>
    Array.from({ length: 30 }, (_, number) =>
      journals[(index + number) % 3]?.append({ runId, fence: null, events: [note(`${number}`), note(`${number}b`)] }),
    ),
  )
  for (const answer of await Promise.all(writes)) assert.equal(answer?.status, 'written')
  for (const runId of ids) {
    const seqs = (await eventsOf(runId)).map((event) => event.seq)
    assert.deepEqual(
      seqs,
      Array.from({ length: 60 }, (_, at) => at + 1),
    )
    assert.equal((await rowOf(runId)).last_seq, 60)
  }
})

test('a batch that was committed before the connection was cut is not written twice', async () => {
  const ids = await runs(10)
  let cuts = 0
  const cutAfterCommit: Db = {
    query: async (sql, values) => {
      const answer = await pool.query(sql as string, values as unknown[])
      if (cuts++ === 0) throw Object.assign(new Error('Connection terminated unexpectedly'), { code: 'ECONNRESET' })
      return answer as never
    },
  }
  const cut = createJournal({ db: cutAfterCommit, log: silentLog })
  const answers = await Promise.all(
    ids.map((runId) => cut.append({ runId, fence: 1, events: [note('once'), note('again')] })),
  )
  for (const answer of answers) assert.deepEqual(plain(answer), { status: 'written', firstSeq: 1 })
  for (const runId of ids) assert.equal((await eventsOf(runId)).length, 2)
})

test('a batch cut before its commit is written by the retry', async () => {
  const [runId = ''] = await runs()
  let cuts = 0
  const cutBefore: Db = {
    query: async (sql, values) => {
      if (cuts++ === 0) throw Object.assign(new Error('Connection terminated unexpectedly'), { code: 'ECONNRESET' })
      return pool.query(sql as string, values as unknown[]) as never
    },
  }
  const cut = createJournal({ db: cutBefore, log: silentLog })
  const answer = await cut.append({ runId, fence: 1, events: [note('x')] })
  assert.deepEqual(plain(answer), { status: 'written', firstSeq: 1 })
  assert.equal((await eventsOf(runId)).length, 1)
})

test('an entry that cannot be stored fails alone', async () => {
  const ids = await runs(9)
  const outcomes = await Promise.allSettled(
    ids.map((runId, index) =>
      journal.append({
        runId,
        fence: 1,
        events: [note('x')],
        ...(index === 4 ? { change: { set: { status: 'nonsense' as 'failed' } } } : {}),
      }),
    ),
  )
  assert.deepEqual(
    outcomes.map((outcome) => outcome.status),
    ids.map((_, index) => (index === 4 ? 'rejected' : 'fulfilled')),
  )
})

test('NUL and halves of surrogate pairs are replaced, in values and keys, and the rest stays as it is', async () => {
  const [runId = ''] = await runs()
  const odd = { 'k\0': ['a\0b', '\ud800x', '😀', { deep: '\udc00' }], fine: 'ünïcode \\u0000 as text' }
  await journal.append({ runId, fence: 1, events: [{ kind: 'test.odd', data: odd }] })
  assert.deepEqual((await eventsOf(runId))[0]?.data, {
    'k\ufffd': ['a\ufffdb', '\ufffdx', '😀', { deep: '\ufffd' }],
    fine: 'ünïcode \\u0000 as text',
  })
})

test("a sub-run's events appear in the journals of its ancestors too, in their numbering, until the ancestors have ended", async () => {
  const [top = '', middle = '', child = ''] = await runs(3)
  await pool.query('update agent_runs set open_children = 1 where id = any($1)', [[top, middle]])
  await journal.append({ runId: top, fence: 1, events: [note('mine')] })
  const ancestors = [top, middle]
  await Promise.all([
    journal.append({ runId: child, fence: 1, events: [note('a'), note('b')], ancestors }),
    journal.append({ runId: middle, fence: 1, events: [note('m')], ancestors: [top] }),
  ])
  assert.deepEqual(
    (await eventsOf(middle)).map((event) => [event.data.run_id ?? 'own', event.data.text]),
    [
      [child, 'a'],
      [child, 'b'],
      ['own', 'm'],
    ],
  )
  assert.deepEqual(
    (await eventsOf(top)).map((event) => event.data.text),
    ['mine', 'a', 'b', 'm'],
  )
  await journal.append({
    runId: top,
    fence: 1,
    events: [note('end')],
    change: { set: { status: 'failed', ended: true } },
  })
  await journal.append({ runId: child, fence: 1, events: [note('late')], ancestors })
  assert.equal((await eventsOf(top)).at(-1)?.data.text, 'end')
  assert.equal((await eventsOf(middle)).at(-1)?.data.text, 'late')
})

test("a sub-run's event is stored once, however deep the sub-run is", async () => {
  const [top = '', middle = '', child = ''] = await runs(3)
  const told = note('told '.repeat(200))
  await journal.append({ runId: child, fence: 1, events: [told, note('short')], ancestors: [top, middle] })
  const { rows } = await pool.query<{ run_id: string }>(
    `select run_id from run_events where run_id = any($1) and data->>'text' = $2`,
    [[top, middle, child], told.data.text],
  )
  assert.deepEqual(rows, [{ run_id: child }])
  for (const ancestor of [top, middle]) {
    assert.deepEqual(
      (await eventsOf(ancestor)).map(({ seq, kind, data }) => ({ seq, kind, data })),
      [
        { seq: 1, kind: told.kind, data: { run_id: child, ...told.data } },
        { seq: 2, kind: told.kind, data: { run_id: child, text: 'short' } },
      ],
    )
  }
})

test('a copy that an earlier release has made is read as it stands', async () => {
  const [top = '', child = ''] = await runs(2)
  await pool.query('insert into run_events (run_id, seq, id, kind, data) values ($1, 1, $2, $3, $4)', [
    top,
    newId(),
    'test.noted',
    { run_id: child, text: 'a copy' },
  ])
  assert.deepEqual((await eventsOf(top))[0]?.data, { run_id: child, text: 'a copy' })
})

test('events that an owner appends after it has lost a sub-run are in no journal, and other appends are not delayed', async () => {
  const [top = '', lost = '', mine = '', alone = ''] = await runs(4)
  await pool.query('update agent_runs set open_children = 2 where id = $1', [top])
  await pool.query('update agent_runs set fence = 2 where id = $1', [lost])
  const heard: StoredEvent[] = []
  const watched = createJournal({ db: pool, log: silentLog, onWritten: (events) => heard.push(...events) })
  const end = { set: { status: 'completed', ended: true } } as const
  const answers = await Promise.all([
    watched.append({ runId: lost, fence: 1, events: [note('late')], change: end, ancestors: [top] }),
    watched.append({ runId: mine, fence: 1, events: [note('in time')], change: end, ancestors: [top] }),
    watched.append({ runId: alone, fence: 1, events: [note('alone')] }),
  ])
  assert.deepEqual(
    answers.map((answer) => answer.status),
    ['lost', 'written', 'written'],
  )
  assert.deepEqual(
    (await eventsOf(top)).map((event) => [event.seq, event.data]),
    [[1, { run_id: mine, text: 'in time' }]],
  )
  assert.equal((await rowOf(top)).open_children, 1)
  assert.equal((await rowOf(top)).last_seq, 1)
  assert.ok(heard.every((event) => !event.data.includes('late')))
})

test('events of sub-runs that were committed before the connection was cut are not written twice', async () => {
  const [top = '', child = ''] = await runs(2)
  let cuts = 0
  const cutAfterCommit: Db = {
    query: async (sql, values) => {
      const answer = await pool.query(sql as string, values as unknown[])
      if (cuts++ === 0) throw Object.assign(new Error('Connection terminated unexpectedly'), { code: 'ECONNRESET' })
      return answer as never
    },
  }
  const cut = createJournal({ db: cutAfterCommit, log: silentLog })
  await cut.append({ runId: child, fence: 1, events: [note('a'), note('b')], ancestors: [top] })
  for (const id of [top, child]) {
    assert.deepEqual(
      (await eventsOf(id)).map((event) => [event.seq, event.data.text]),
      [
        [1, 'a'],
        [2, 'b'],
      ],
    )
  }
})

test('a parent that waits for its sub-runs is ready when the last of them ends, also when they end at once', async () => {
  const [parent = '', ...children] = await runs(9)
  await pool.query('update agent_runs set open_children = 8 where id = $1', [parent])
  await journal.append({
    runId: parent,
    fence: 1,
    events: [note('park')],
    change: { set: { waits_for: 'children', release: true } },
  })
  const end = (runId: string) =>
    journal.append({
      runId,
      fence: 1,
      events: [note('end')],
      change: { set: { status: 'completed', ended: true } },
      ancestors: [parent],
    })
  await Promise.all(children.slice(1).map(end))
  assert.equal((await rowOf(parent)).ready_at, null)
  await end(children[0] ?? '')
  assert.ok((await rowOf(parent)).ready_at)
  assert.equal((await rowOf(parent)).open_children, 0)
})

test('a parent whose sub-runs ended before it parked is ready at once', async () => {
  const [parent = ''] = await runs()
  await journal.append({
    runId: parent,
    fence: 1,
    events: [note('park')],
    change: { set: { waits_for: 'children', release: true } },
  })
  assert.ok((await rowOf(parent)).ready_at)
})

test('an agent is charged by the statement that records the call, and its reservation is given back', async () => {
  const ids = await runs(3)
  const agentId = (await rowOf(ids[0] ?? '')).agent_id
  await pool.query('update agent_runs set reserved = 100 where id = any($1)', [ids])
  await pool.query('insert into agent_tokens (agent_id, reserved) values ($1, 300)', [agentId])
  const call = { steps: 1, inputTokens: 10, outputTokens: 5, settled: 100 }
  await Promise.all(ids.map((runId) => journal.append({ runId, fence: 1, events: [note('step')], change: call })))
  const { rows } = await pool.query('select used, reserved from agent_tokens where agent_id = $1', [agentId])
  assert.deepEqual(rows, [{ used: 45, reserved: 0 }])
  assert.equal((await rowOf(ids[0] ?? '')).reserved, 0)
})

test('events of a transaction are published at its commit, and never after a rollback', async () => {
  const [top = '', child = ''] = await runs(2)
  const heard: StoredEvent[] = []
  const watched = createJournal({ db: pool, log: silentLog, onWritten: (events) => heard.push(...events) })
  const entry = { runId: child, fence: null, events: [note('said')], ancestors: [top] }
  await assert.rejects(
    inTransaction(pool, async (tx) => {
      await watched.appendIn(tx, entry)
      throw new Error('not after all')
    }),
  )
  assert.deepEqual(heard, [])
  await inTransaction(pool, async (tx) => {
    await watched.appendIn(tx, entry)
    assert.deepEqual(heard, [], 'the transaction is not committed yet')
  })
  assert.deepEqual(
    heard.map(({ runId, seq, data }) => ({ runId, seq, data: JSON.parse(data) })),
    [
      { runId: child, seq: 1, data: { text: 'said' } },
      { runId: top, seq: 1, data: { run_id: child, text: 'said' } },
    ],
  )
})
