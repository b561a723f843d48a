import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type LogFields, silentLog } from '../../kernel/log.ts'
import { callFunction, callOnce } from './call-function.ts'

test('the stack of a function that throws is in the log of the process; clients read only its message', async () => {
  const lines: LogFields[] = []
  const log = { ...silentLog, warn: (fields: LogFields) => void lines.push(fields) }
  const signal = new AbortController().signal
  const of = {
    name: 'divide',
    scope: 'f:t',
    key: 'given',
    attempt: 2,
    signal,
    flowRunId: 'f',
    leafId: 't',
    projectId: 'p',
    log,
  }
  const run = function divideByNothing(): never {
    throw new Error('by nothing')
  }
  assert.deepEqual(await callOnce({ ...of, run }, null), { status: 'failed', error: 'by nothing' })
  assert.equal(lines.length, 1)
  const { err, ...fields } = lines[0] ?? {}
  assert.deepEqual(fields, { flow_run_id: 'f', function: 'divide', key: 'given', attempt: 2 })
  assert.match(err instanceof Error ? (err.stack ?? '') : '', /at divideByNothing/)
})

/** The keys of the calls of a leaf, in their order. */
async function keysOf(argument: unknown, more: { name?: string; scope?: string; isEach?: boolean; key?: string } = {}) {
  const { name = 'refund', isEach = false, ...keyed } = more
  const keys: string[] = []
  const leaf = { id: 't', attempt: 1, node: { type: 'task' as const, function: name }, argument, isEach }
  const run = (_: never, context: { key: string }) => void keys.push(context.key)
  const of = { signal: new AbortController().signal, flowRunId: 'f', projectId: 'p', log: silentLog }
  await callFunction({ ...of, run, leaf: { ...leaf, scope: 'f:t', ...keyed } })
  return keys
}

test('the key of a call is made from the scope, the function and its arguments as values', async () => {
  const [key] = await keysOf({ amount: 40, to: 'Ada' })
  assert.deepEqual(await keysOf({ to: 'Ada', amount: 40.0 }), [key])
  const others = [
    await keysOf({ amount: 41, to: 'Ada' }),
    await keysOf({ amount: '40', to: 'Ada' }),
    await keysOf({ amount: 40, to: 'Ada' }, { name: 'pay' }),
    await keysOf({ amount: 40, to: 'Ada' }, { scope: 'f:u' }),
  ].flat()
  assert.equal(new Set([key, ...others]).size, 5)
})

test('two equal items of one leaf are two calls, and each keeps its key', async () => {
  const keys = await keysOf(['a', 'a', 'b'], { isEach: true })
  assert.equal(new Set(keys).size, 3)
  assert.deepEqual(await keysOf(['a', 'a', 'c'], { isEach: true }).then((again) => again.slice(0, 2)), keys.slice(0, 2))
})

test('a leaf that an earlier release handed out keeps its keys', async () => {
  assert.deepEqual(await keysOf(1, { key: 'old' }), ['old'])
  assert.deepEqual(await keysOf([1, 1], { key: 'old', isEach: true }), ['old:0', 'old:1'])
})
