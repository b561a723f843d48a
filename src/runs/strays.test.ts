// What a process gives back because nobody works on it, and what it must not take for that.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { atEnd } from '../../test/kit/at-end.ts'
import { createTestRuns } from '../../test/kit/run-worker.ts'
import { createScriptedModel } from '../../test/kit/scripted-model.ts'
import { createPool } from '../db/pool.ts'
import { silentLog } from '../kernel/log.ts'

test('a run that is claimed while strays are looked for is none: it is not taken from its own process', async () => {
  const first = await createTestRuns({ slots: 0 })
  const agent = await first.createAgent()
  // Claims that were cut off are looked for in the second sweep, whose first transaction gets its connection late.
  const pool = createPool({ url: first.url, max: 5, log: silentLog })
  atEnd(() => pool.end())
  const looked = Promise.withResolvers<void>()
  const gate = Promise.withResolvers<void>()
  const over = Promise.withResolvers<void>()
  const connect = pool.connect.bind(pool)
  let transactions = 0
  const late = async () => {
    looked.resolve()
    await gate.promise
    const client = await connect()
    const release = client.release.bind(client)
    client.release = (error) => {
      release(error)
      over.resolve()
    }
    return client
  }
  // Only transactions ask for a connection by a promise; queries come with a callback, the other shape of its type.
  pool.connect = ((...given: []) =>
    given.length === 0 && ++transactions === 2 ? late() : connect(...given)) as typeof pool.connect
  let asked = 0
  first.models.set(
    'script',
    createScriptedModel(async () => {
      asked++
      await over.promise
      return { text: 'Done.' }
    }),
  )
  const second = await createTestRuns({ database: { ...first, pool } })
  await looked.promise
  const { id } = await second.start(agent)
  // Long enough for the run to be claimed, where anybody claims now.
  for (let turn = 0; turn < 50; turn++) await first.pool.query('select 1')
  gate.resolve()
  assert.equal((await second.finished(id)).status, 'completed')
  assert.equal(asked, 1)
  assert.ok(!(await second.kinds(id)).includes('run.recovered'))
})
