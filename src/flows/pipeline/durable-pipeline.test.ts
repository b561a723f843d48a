// A pipeline on a flow's real journal: the next owner goes on after the last commit.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestDatabase } from '../../../test/kit/database.ts'
import { insertProject } from '../../../test/kit/runs.ts'
import { silentLog } from '../../kernel/log.ts'
import { systemActor } from '../../kernel/principal.ts'
import { createFlowJournal } from '../execution/journal.ts'
import { startFlow } from '../execution/start.ts'
import { builtInPatterns } from '../machine/built-in-patterns.ts'
import type { Pipeline } from '../machine/patterns/pipeline.ts'
import type { PipelineParts } from './parts.ts'
import { createRecordReader } from './read-record.ts'
import { runPipeline } from './run-pipeline.ts'

const { pool } = await createTestDatabase()
const projectId = await insertProject(pool)
const journal = createFlowJournal({ db: pool, log: silentLog })
const node: Pipeline = {
  type: 'pipeline',
  source: '{{input}}',
  on_error: 'skip',
  stages: ['parse', 'transform', 'validate'].map((name) => ({ type: 'task', function: name })),
}
const ITEMS = 200

class Lost extends Error {}

function partsOf(flowRunId: string, leafId: string, fence: number, call: PipelineParts['call']): PipelineParts {
  return {
    flowRunId,
    keyScope: 'run:pipe',
    leafId,
    node,
    buffer: 10,
    call,
    source: {
      open: async function* () {
        for (let index = 0; index < ITEMS; index++) yield { index, text: `half a pair \ud800, a zero \0, ${index}` }
      },
    },
    argumentOf: (_, item) => item,
    append: async (events) => {
      if ((await journal.append({ runId: flowRunId, fence, events })).status === 'lost') throw new Lost()
    },
    read: createRecordReader(pool, { flowRunId, leafId }, []),
    signal: new AbortController().signal,
  }
}

test('an owner that lost the flow stops; the next owner repeats nothing that is on record', async () => {
  const run = { projectId, flowId: null, root: node, input: null, timeoutMs: 60_000, workers: null }
  const flowRunId = await startFlow(pool, run, systemActor, builtInPatterns)
  const finished = async (): Promise<Set<string>> => {
    const { rows } = await pool.query<{ place: string }>(
      `select (data->>'stage') || ':' || coalesce(item->>0, '') as place
       from flow_events, jsonb_array_elements(coalesce(data->'results', data->'errors')) as item
       where run_id = $1 and kind in ('items.completed', 'items.skipped') and data->>'task_id' = 'pipe'`,
      [flowRunId],
    )
    return new Set(rows.map((row) => row.place))
  }
  const work: PipelineParts['call'] = async (stage, value, { key }) => {
    if (stage === 1 && key.endsWith(':7')) return { status: 'failed', error: 'broken' }
    return { status: 'completed', value }
  }
  // Another pipeline of the same flow has a record of its own.
  assert.equal((await runPipeline(partsOf(flowRunId, 'other', 0, work))).status, 'completed')

  const first = partsOf(flowRunId, 'pipe', 0, async (stage, value, context) => {
    if (stage === 2 && context.key.endsWith(':100')) {
      await pool.query('update flow_runs set fence = 1 where id = $1', [flowRunId])
    }
    return work(stage, value, context)
  })
  await assert.rejects(runPipeline(first), Lost)
  const before = await finished()
  assert.ok(before.has('2:80') && !before.has('2:100'), [...before].join(' '))

  const calls: string[] = []
  const second = partsOf(flowRunId, 'pipe', 1, (stage, value, context) => {
    calls.push(`${stage}:${context.key.split(':')[3]}`)
    return work(stage, value, context)
  })
  const outcome = await runPipeline(second)
  const expected = Array.from({ length: ITEMS }, (_, index) => ({
    index,
    text: `half a pair \ufffd, a zero \ufffd, ${index}`,
  })).filter(({ index }) => index !== 7)
  assert.deepEqual(outcome, { status: 'completed', value: expected })
  assert.deepEqual(
    calls.filter((call) => before.has(call)),
    [],
  )
  // Every item is finished in every stage, but for the skipped item, which never reached the third stage.
  assert.equal((await finished()).size, ITEMS * 3 - 1)
  assert.equal(before.size + calls.length, ITEMS * 3 - 1)
})
