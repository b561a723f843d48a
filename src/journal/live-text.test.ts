// Text under way between two processes: one writes it, the other watches.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { createTestDatabase } from '../../test/kit/database.ts'
import { insertProject, insertRuns } from '../../test/kit/runs.ts'
import { until } from '../../test/kit/until.ts'
import type { Db } from '../db/pool.ts'
import { silentLog } from '../kernel/log.ts'
import { createHub, type Hub, type LiveText } from './hub.ts'
import { createLiveTexts, pruneLiveText } from './live-text.ts'
import { watchOthers } from './watch-others.ts'

const { pool } = await createTestDatabase()
const projectId = await insertProject(pool)

const newRun = async (): Promise<string> => (await insertRuns(pool, projectId, 1))[0] ?? assert.fail()

/** The number of rows for a run. */
async function rows(runId: string): Promise<number> {
  const found = await pool.query<{ count: number }>(
    `select (select count(*) from live_texts where run_id = $1) +
            (select count(*) from live_text_pieces where run_id = $1) as count`,
    [runId],
  )
  return found.rows[0]?.count ?? 0
}

/** Counts the characters of the texts that are sent, and of those that come back. */
function counting(): { db: Db; sent(): number; read(): number; statements(): number } {
  let sent = 0
  let read = 0
  let statements = 0
  const db: Db = {
    query: async (sql, values) => {
      statements++
      const strings = (values ?? [])
        .flat()
        .filter((value) => typeof value === 'string' && !/^[0-9a-f-]{36}$/.test(value))
      sent += strings.join('').length
      const answer = await pool.query(sql, values as unknown[])
      for (const row of answer.rows as Record<string, unknown>[]) read += String(row.text ?? '').length
      return answer as never
    },
  }
  return { db, sent: () => sent, read: () => read, statements: () => statements }
}

function speaker({ hasOthers = () => true, db = pool as Db }: { hasOthers?: () => boolean; db?: Db } = {}) {
  const hub = createHub()
  const texts = createLiveTexts({ db, hub, hasOthers, log: silentLog, writeEveryMs: 5 })
  after(() => texts.stop())
  return { hub, texts }
}

/** Another process that watches these runs. */
function watcher(watched: readonly string[], db: Db = pool) {
  const hub: Hub = createHub()
  const heard: LiveText[] = []
  for (const id of watched) {
    hub.watch(id, {
      onEvents: () => {},
      onText: (text) => heard.push(text),
      onPoke: () => {},
      onGone: () => {},
    })
  }
  const others = watchOthers({ db, hub, log: silentLog, lookEveryMs: 5 })
  after(() => others.stop())
  return { hub, heard, others, shown: () => heard.map(({ text }) => text).join('') }
}

const completed = (runId: string, step: number, of: string = runId) => ({
  runId,
  seq: 1,
  kind: 'step.completed',
  data: JSON.stringify({ ...(of === runId ? {} : { run_id: of }), step }),
  at: new Date(),
})

test('a process that joins in mid-text is shown the text so far', async () => {
  const runId = await newRun()
  let hasOthers = false
  const { texts } = speaker({ hasOthers: () => hasOthers })
  texts.add({ runId, step: 1, offset: 0, text: 'First ' }, [])
  texts.add({ runId, step: 1, offset: 6, text: 'I look' }, [])
  await new Promise((resolve) => setTimeout(resolve, 100))
  assert.equal(await rows(runId), 0, 'alone, nothing is written')
  hasOthers = true
  const { shown, others } = watcher([runId])
  await until(() => shown() === 'First I look', 'the text is shared')
  assert.deepEqual(others.soFar(runId), { runId, step: 1, offset: 0, text: 'First I look' })
})

test('writing and reading a long text costs as much as its new part', async () => {
  const runId = await newRun()
  const [writing, reading] = [counting(), counting()]
  const { texts } = speaker({ db: writing.db })
  const { shown, heard } = watcher([runId], reading.db)
  const piece = 'x'.repeat(5_000)
  for (let n = 0; n < 40; n++) {
    texts.add({ runId, step: 1, offset: n * piece.length, text: piece }, [])
    await until(() => shown().length === (n + 1) * piece.length, 'the piece is shown')
  }
  const whole = 40 * piece.length
  assert.equal(reading.read(), whole, 'text that was read once is not read again')
  assert.ok(writing.sent() < 1.2 * whole, `${writing.sent()} characters were sent for ${whole}`)
  assert.deepEqual(
    heard.map(({ offset }) => offset),
    heard.map((_, index) => heard.slice(0, index).reduce((sum, { text }) => sum + text.length, 0)),
  )
})

test('the text is removed when its step ends, and the text of the next step begins at offset 0', async () => {
  const runId = await newRun()
  const { texts, hub } = speaker()
  const { heard, others } = watcher([runId])
  texts.add({ runId, step: 1, offset: 0, text: 'one' }, [])
  await until(() => heard.length === 1, 'the text is shown')
  hub.publish([completed(runId, 1, 'another run')])
  texts.add({ runId, step: 1, offset: 3, text: ' more' }, [])
  await until(() => heard.length === 2, "a sub-run's end is not this run's")
  hub.publish([completed(runId, 1)])
  assert.equal(texts.soFar(runId), null)
  await until(async () => (await rows(runId)) === 0, 'the text is gone')
  await until(() => others.soFar(runId) === null, 'the text is gone elsewhere')
  texts.add({ runId, step: 2, offset: 0, text: 'two' }, [])
  await until(() => heard.length === 3, 'the next text is shown')
  assert.deepEqual(heard[2], { runId, step: 2, offset: 0, text: 'two' })
})

test('the text of a run that leaves the process is removed, and a stop waits for the removal', async () => {
  const [first, second] = [await newRun(), await newRun()]
  const { texts } = speaker()
  const { heard } = watcher([first, second])
  texts.add({ runId: first, step: 1, offset: 0, text: 'one' }, [])
  texts.add({ runId: second, step: 1, offset: 0, text: 'two' }, [])
  await until(() => heard.length === 2, 'both texts are shown')
  texts.drop(first)
  texts.drop(second)
  await texts.stop()
  assert.deepEqual([await rows(first), await rows(second)], [0, 0])
})

test('a step that begins anew elsewhere replaces the text that the dead process left', async () => {
  const runId = await newRun()
  const dead = speaker()
  const { heard, others } = watcher([runId])
  dead.texts.add({ runId, step: 1, offset: 0, text: 'The first attempt, and it was long' }, [])
  await until(() => heard.length === 1, 'the text is shown')
  const next = speaker()
  next.texts.add({ runId, step: 1, offset: 0, text: 'Anew' }, [])
  await until(() => others.soFar(runId)?.text === 'Anew', 'the new text is known')
  assert.deepEqual(heard.at(-1), { runId, step: 1, offset: 0, text: 'Anew' })
  assert.equal(await rows(runId), 2, 'one head, one piece')
})

test('after a write that failed the whole text is written', async () => {
  const runId = await newRun()
  let failures = 2
  const db: Db = {
    query: async (sql, values) => {
      const answer = await pool.query(sql, values as unknown[])
      // This acts as if the connection had been cut after the commit.
      if (failures-- > 0) throw new Error('cut')
      return answer as never
    },
  }
  const { texts } = speaker({ db })
  const { others } = watcher([runId])
  texts.add({ runId, step: 1, offset: 0, text: 'Said ' }, [])
  await until(() => failures < 2, 'one write has failed')
  texts.add({ runId, step: 1, offset: 5, text: 'once.' }, [])
  await until(() => others.soFar(runId)?.text === 'Said once.', 'the whole text is known')
})

test('a character that comes in two halves is shown whole', async () => {
  const runId = await newRun()
  const { texts } = speaker()
  const { shown } = watcher([runId])
  texts.add({ runId, step: 1, offset: 0, text: 'a\ud83d' }, [])
  await until(() => shown() === 'a', 'the first half waits')
  texts.add({ runId, step: 1, offset: 2, text: '\ude00\0b' }, [])
  await until(() => shown() === 'a\ud83d\ude00\ufffdb', 'the character is whole')
})

test("a sub-run's text is shown to those who watch its ancestors", async () => {
  const [parent, child] = [await newRun(), await newRun()]
  const { texts } = speaker()
  const { heard, others } = watcher([parent])
  texts.add({ runId: child, step: 1, offset: 0, text: 'below' }, [parent])
  await until(() => heard.length === 1, 'the text is shown')
  assert.deepEqual(heard[0], { runId: child, step: 1, offset: 0, text: 'below' })
  assert.deepEqual(others.soFarBelow(parent), heard)
})

test('text that a killed process left is not shown once its step is over, and is removed in time', async () => {
  const [over, ended] = [await newRun(), await newRun()]
  const { texts } = speaker()
  const { heard } = watcher([over, ended])
  await pool.query('update agent_runs set step_count = 1 where id = $1', [over])
  texts.add({ runId: over, step: 1, offset: 0, text: 'over' }, [])
  texts.add({ runId: ended, step: 1, offset: 0, text: 'under way' }, [])
  await until(async () => (await rows(over)) === 2 && heard.length === 1, 'both texts are written, one is shown')
  assert.equal(heard[0]?.text, 'under way')
  await pruneLiveText(pool)
  assert.deepEqual([await rows(over), await rows(ended)], [0, 0], 'nobody owns either run')
})
