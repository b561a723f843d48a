import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type LogFields, silentLog } from '../../kernel/log.ts'
import { callOnce } from './call-function.ts'

test('the stack of a function that throws is in the log of the process; clients read only its message', async () => {
  const lines: LogFields[] = []
  const log = { ...silentLog, warn: (fields: LogFields) => void lines.push(fields) }
  const signal = new AbortController().signal
  const of = { name: 'divide', key: 'f:t', attempt: 2, signal, flowRunId: 'f', leafId: 't', projectId: 'p', log }
  const run = function divideByNothing(): never {
    throw new Error('by nothing')
  }
  assert.deepEqual(await callOnce({ ...of, run }, null), { status: 'failed', error: 'by nothing' })
  assert.equal(lines.length, 1)
  const { err, ...fields } = lines[0] ?? {}
  assert.deepEqual(fields, { flow_run_id: 'f', function: 'divide', key: 'f:t', attempt: 2 })
  assert.match(err instanceof Error ? (err.stack ?? '') : '', /at divideByNothing/)
})
