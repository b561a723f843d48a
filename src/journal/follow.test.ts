import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestDatabase } from '../../test/kit/database.ts'
import { insertProject, insertRuns } from '../../test/kit/runs.ts'
import { silentLog } from '../kernel/log.ts'
import { createJournal } from './append.ts'
import { type Followed, followRun } from './follow.ts'
import { createHub, type LiveText } from './hub.ts'
import { watchOthers } from './watch-others.ts'

const { pool } = await createTestDatabase()
const projectId = await insertProject(pool)
const hub = createHub()
const journal = createJournal({ db: pool, log: silentLog, onWritten: (events) => hub.publish(events) })
/** The journal of another process: no watcher here is told of its events. */
const elsewhere = createJournal({ db: pool, log: silentLog })

const newRun = async (): Promise<string> => (await insertRuns(pool, projectId, 1))[0] ?? ''
const say = (by: typeof journal, runId: string, ...texts: string[]) =>
  by.append({ runId, fence: 1, events: texts.map((text) => ({ kind: 'test.said', data: { text } })) })
const step = (runId: string, kind: 'step.completed' | 'step.restarted', number: number) =>
  journal.append({ runId, fence: 1, events: [{ kind, data: { step: number } }] })

/** Follows until a number of items came, as short texts: `3:test.said` or `1@0 text`. */
function follow(runId: string, { after = 0, soFar = null as LiveText | null } = {}) {
  const stop = new AbortController()
  const seen: string[] = []
  const source = { db: pool, hub, soFar: () => soFar }
  const ended = (async () => {
    for await (const item of followRun(source, runId, { after, signal: stop.signal })) seen.push(shown(item))
  })()
  return {
    seen,
    until: async (count: number): Promise<string[]> => {
      while (seen.length < count) await new Promise(setImmediate)
      return seen
    },
    stop: async (): Promise<string[]> => {
      stop.abort()
      await ended
      return seen
    },
  }
}
const shown = (item: Followed): string =>
  item.type === 'event'
    ? `${item.event.seq}:${item.event.kind}`
    : `${item.text.step}@${item.text.offset} ${item.text.text}`

test('earlier and new events come once, in order, from any point', async () => {
  const runId = await newRun()
  await say(journal, runId, 'a', 'b')
  const all = follow(runId)
  const rest = follow(runId, { after: 1 })
  await all.until(2)
  await say(journal, runId, 'c')
  assert.deepEqual(await all.until(3), ['1:test.said', '2:test.said', '3:test.said'])
  assert.deepEqual(await rest.until(2), ['2:test.said', '3:test.said'])
  await Promise.all([all.stop(), rest.stop()])
  assert.deepEqual(hub.watched(), [], 'a reader that leaves is forgotten')
})

test('events that another process wrote in between are read, and nothing comes twice', async () => {
  const runId = await newRun()
  const reader = follow(runId)
  for (let round = 0; round < 10; round++) {
    await say(elsewhere, runId, 'there')
    await say(journal, runId, 'here')
  }
  await reader.until(20)
  await say(elsewhere, runId, 'last')
  hub.poke(runId)
  await reader.until(21)
  const seqs = (await reader.stop()).map((item) => Number.parseInt(item, 10))
  assert.deepEqual(
    seqs,
    Array.from({ length: 21 }, (_, index) => index + 1),
  )
})

test('a text keeps its place between the events, and of a text that comes twice only the new part is shown', async () => {
  const runId = await newRun()
  const text = (number: number, offset: number, piece: string) =>
    hub.publishText(runId, { runId, step: number, offset, text: piece })
  const reader = follow(runId, { soFar: { runId, step: 1, offset: 0, text: 'so ' } })
  await reader.until(1)
  text(1, 3, 'far')
  text(1, 0, 'so far, so good')
  await reader.until(3)
  await step(runId, 'step.completed', 1)
  text(1, 15, ' late')
  text(2, 0, 'next')
  assert.deepEqual(await reader.until(5), ['1@0 so ', '1@3 far', '1@6 , so good', '1:step.completed', '2@0 next'])
  await step(runId, 'step.restarted', 2)
  text(2, 0, 'anew')
  assert.deepEqual((await reader.until(7)).slice(5), ['2:step.restarted', '2@0 anew'])
  text(2, 99, 'a piece without the text before it')
  await step(runId, 'step.completed', 2)
  assert.equal((await reader.until(8)).at(-1), '3:step.completed')
  await reader.stop()
})

test('text of the next step that overtakes the end of this one is not lost', async () => {
  const runId = await newRun()
  const reader = follow(runId)
  hub.publishText(runId, { runId, step: 2, offset: 0, text: 'early' })
  await reader.until(1)
  await step(runId, 'step.completed', 1)
  await reader.until(2)
  hub.publishText(runId, { runId, step: 2, offset: 5, text: ' bird' })
  assert.deepEqual(await reader.until(3), ['2@0 early', '1:step.completed', '2@5  bird'])
  await reader.stop()
})

test('a run that is deleted ends its stream', async () => {
  const runId = await newRun()
  const others = watchOthers({ db: pool, hub, log: silentLog })
  const stop = new AbortController()
  const source = { db: pool, hub, soFar: () => null }
  const seen: string[] = []
  const ended = (async () => {
    for await (const item of followRun(source, runId, { after: 0, signal: stop.signal })) seen.push(shown(item))
  })()
  await say(journal, runId, 'a')
  await pool.query('delete from agent_runs where id = $1', [runId])
  await ended
  assert.deepEqual(seen, ['1:test.said'])
  await others.stop()
})
