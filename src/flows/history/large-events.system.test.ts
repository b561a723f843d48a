import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { createTestDatabase } from '../../../test/kit/database.ts'
import { insertProject, insertRuns } from '../../../test/kit/runs.ts'
import type { Db } from '../../db/pool.ts'
import { createJournal } from '../../journal/append.ts'
import { readEvents, replayEvents } from '../../journal/read.ts'
import { silentLog } from '../../kernel/log.ts'
import { loadState } from '../../runs/load-state.ts'
import { listSteps } from '../../runs/steps.ts'
import { readFlowEvents } from './record.ts'

const { pool } = await createTestDatabase()
const projectId = await insertProject(pool)
const journal = createJournal({ db: pool, log: silentLog })
const MEGABYTE = 1_048_576
const MOST = 10 * MEGABYTE

/** A pool that keeps the rows of its answers. */
function measured(): { db: Db; largest(): number; rows: Record<string, unknown>[] } {
  let largest = 0
  const rows: Record<string, unknown>[] = []
  const db: Db = {
    query: async (sql, values) => {
      const answer = await pool.query(sql as string, values as unknown[])
      rows.push(...answer.rows)
      largest = Math.max(largest, JSON.stringify(answer.rows).length)
      return answer as never // the driver's own overloads are narrower
    },
  }
  return { db, largest: () => largest, rows }
}

const step = (text: string, number: number) => ({
  kind: 'step.completed',
  data: { step: number, text, tool_calls: [], finish_reason: 'stop', usage: {}, started_at: '', duration: 1 },
})

async function journalOf(texts: readonly string[]): Promise<string> {
  const [runId = ''] = await insertRuns(pool, projectId, 1)
  for (const [place, text] of texts.entries()) {
    await journal.append({ runId, fence: 1, events: [step(text, place + 1)] })
  }
  return runId
}

for (const [name, textOf] of [
  ['that do not compress', () => randomBytes(MEGABYTE / 2).toString('hex')],
  ['that compress well', () => 'all the same '.repeat(MEGABYTE / 13)],
] as const) {
  test(`a reader of events of a megabyte ${name} holds a few events at a time, and sees all`, async () => {
    const texts = Array.from({ length: 30 }, textOf)
    const runId = await journalOf(texts)
    const { db, largest } = measured()
    const seqs: number[] = []
    for await (const { seq, data } of replayEvents(db, runId)) {
      seqs.push(seq)
      assert.equal(data.text, texts[seq - 1])
    }
    assert.deepEqual(
      seqs,
      texts.map((_, place) => place + 1),
    )
    for (let after = 0; after < 30; ) {
      const page = await readEvents(db, runId, { after })
      assert.equal(page[0]?.seq, after + 1)
      after = page.at(-1)?.seq ?? 30
    }
    assert.deepEqual(await readEvents(db, runId, { after: 30 }), [])
    const steps: number[] = []
    for (let cursor: string | null = '0'; cursor !== null; ) {
      const page: Awaited<ReturnType<typeof listSteps>> = await listSteps(db, runId, { limit: 50, cursor })
      steps.push(...page.items.map((item) => item.seq))
      cursor = page.next_cursor
    }
    assert.deepEqual(steps, seqs)
    assert.ok(largest() < MOST, `${largest()} at once`)
  })
}

test('a page of small events has the full length', async () => {
  const [runId = ''] = await insertRuns(pool, projectId, 1)
  await journal.append({ runId, fence: 1, events: Array.from({ length: 2_500 }, (_, place) => step('x', place + 1)) })
  assert.equal((await readEvents(pool, runId)).length, 2_000)
  assert.equal((await readEvents(pool, runId, { after: 2_000 })).length, 500)
  const { db, rows } = measured()
  let replayed = 0
  for await (const _ of replayEvents(db, runId)) replayed++
  assert.equal(replayed, 2_500)
  assert.equal(rows.length, 2_500)
})

test('a reader of a flow run with events of a megabyte holds a few events at a time', async () => {
  const { rows: flows } = await pool.query<{ id: string }>(
    `insert into flow_runs (id, project_id, root, input, progress, timeout) values (gen_random_uuid(), $1, '{}', '1', '{}', 1)
     returning id`,
    [projectId],
  )
  const flowRunId = flows[0]?.id ?? ''
  await pool.query(
    `insert into flow_events (run_id, seq, id, kind, data)
     select $1, i, gen_random_uuid(), 'task.completed', jsonb_build_object('result', repeat(i::text || 'abcdefghij', 80000))
     from generate_series(1, 30) i`,
    [flowRunId],
  )
  const { db, largest } = measured()
  const seen: number[] = []
  for (let after = 0; ; after = seen.at(-1) ?? 0) {
    const page = await readFlowEvents(db, flowRunId, { after })
    if (page.length === 0) break
    seen.push(...page.map((event) => event.seq))
  }
  assert.equal(seen.length, 30)
  assert.ok(largest() < MOST, `${largest()} at once`)
})

test('a parent that wakes does not read the texts of its sub-runs', async () => {
  const [parent = '', child = ''] = await insertRuns(pool, projectId, 2)
  await journal.append({ runId: parent, fence: 1, events: [step('mine', 1)] })
  for (let number = 1; number <= 20; number++) {
    await journal.append({ runId: child, fence: 1, events: [step('told', number)], ancestors: [parent] })
  }
  // An earlier release copied the events of sub-runs like this.
  await pool.query(
    `insert into run_events (run_id, seq, id, kind, data)
     select $1, 21 + i, gen_random_uuid(), 'step.completed', jsonb_build_object('run_id', $2::text, 'step', i)
     from generate_series(1, 20) i`,
    [parent, child],
  )
  const { db, rows } = measured()
  const state = await loadState(db, { id: parent, base_run_id: null, base_seq: null })
  assert.equal(state.steps, 1)
  assert.equal(rows.filter((row) => row.data !== null).length, 1)
  assert.equal(rows.length, 21, 'the copies of earlier releases are recognised as events of sub-runs')
})
