import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestFlows } from '../../../test/kit/flows.ts'
import { FLOW_CHANNEL, tellProcesses } from '../../journal/wake.ts'
import { HANDOUT_NOTICE, handOut, type NewHandout } from './handouts.ts'

const { pool, projectId, functions, startFlow, ended } = await createTestFlows()

test('processes are notified of leaves that are handed out, and not of leaves that were handed out before', async () => {
  const gate = Promise.withResolvers<void>()
  functions.set('held', () => gate.promise)
  const flowRunId = await startFlow({ type: 'task', function: 'held' })
  const client = await pool.connect()
  try {
    const notices: (string | undefined)[] = []
    let heard = Promise.withResolvers<void>()
    client.on('notification', ({ payload }) => {
      if (payload === HANDOUT_NOTICE) notices.push(payload)
      if (payload === 'the end') heard.resolve()
    })
    await client.query(`listen ${FLOW_CHANNEL}`)
    // Notices arrive in the order of their commits.
    const noticesOf = async (...ids: string[]): Promise<number> => {
      const leaves = ids.map(
        (id): NewHandout => ({
          id,
          attempt: 1,
          node: { type: 'task', function: 'unknown' },
          isEach: false,
          argument: null,
          scope: 'scope',
        }),
      )
      heard = Promise.withResolvers()
      await handOut(pool, { flowRunId, projectId }, leaves)
      await tellProcesses(pool, FLOW_CHANNEL, 'the end')
      await heard.promise
      return notices.splice(0).length
    }
    assert.equal(await noticesOf('a', 'b'), 1)
    assert.equal(await noticesOf('a', 'b'), 0)
    assert.equal(await noticesOf('b', 'c'), 1)
  } finally {
    client.release(true)
    gate.resolve()
  }
  await ended(flowRunId)
})
