import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestDatabase } from '../../test/kit/database.ts'
import { insertProject, insertRuns } from '../../test/kit/runs.ts'
import { createJournal } from '../journal/append.ts'
import type { StoredEvent } from '../journal/entries.ts'
import { type Log, type LogFields, silentLog } from '../kernel/log.ts'
import { logEvents } from './log-events.ts'

const lines: [level: string, fields: LogFields, message: string][] = []
const log: Log = {
  ...silentLog,
  info: (fields, message) => void lines.push(['info', fields, message]),
  warn: (fields, message) => void lines.push(['warn', fields, message]),
}

test('a run that fails or pauses is one line with its id and its code; its sub-runs are not logged twice', async () => {
  const { pool } = await createTestDatabase()
  const projectId = await insertProject(pool)
  const [parent = '', child = ''] = await insertRuns(pool, projectId, 2)
  const journal = createJournal({ db: pool, log: silentLog, onWritten: logEvents(log) })
  const failed = { error_code: 'MODEL_ERROR', error_message: 'the secret words of a model', summary: null }
  lines.length = 0
  await journal.append({ runId: child, fence: 1, events: [{ kind: 'run.failed', data: failed }], ancestors: [parent] })
  const paused = { pause_reason: 'budget', summary: 'words' }
  await journal.append({ runId: parent, fence: 1, events: [{ kind: 'run.paused', data: paused }] })
  await journal.append({ runId: parent, fence: 1, events: [{ kind: 'run.completed', data: { summary: 'words' } }] })
  assert.deepEqual(lines, [
    ['warn', { run_id: child, error_code: 'MODEL_ERROR' }, 'a run failed'],
    ['info', { run_id: parent, pause_reason: 'budget' }, 'a run paused'],
  ])
})

test('each item that a pipeline skips is one line', () => {
  lines.length = 0
  const event = (kind: string, data: object): StoredEvent => ({
    runId: 'f',
    seq: 1,
    kind,
    data: JSON.stringify(data),
    at: new Date(),
  })
  const errors = [
    [3, 'broken'],
    [7, 'broken'],
  ]
  logEvents(log)([event('task.completed', {}), event('items.skipped', { task_id: 't', stage: 1, errors })])
  assert.deepEqual(lines, [
    ['info', { flow_run_id: 'f', task_id: 't', stage: 1, index: 3 }, 'a pipeline skipped an item'],
    ['info', { flow_run_id: 'f', task_id: 't', stage: 1, index: 7 }, 'a pipeline skipped an item'],
  ])
})
