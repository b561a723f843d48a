// Two processes over one database: a change of the library in one process holds in the other.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { createTestRuns } from '../../test/kit/run-worker.ts'
import { inTransaction } from '../db/transaction.ts'
import { createEgress } from '../egress/egress.ts'
import { systemActor } from '../kernel/principal.ts'
import { savePrompt } from '../prompts/write-prompt.ts'
import type { Companion } from '../runs/companions.ts'
import { openPrompts } from './prompt-services.ts'

const egress = createEgress({ allow: [] })
after(() => egress.close())
const first = await createTestRuns()
const second = await createTestRuns({ database: first })
const { pool, projectId } = first
const { library, companion, services, resolve } = await openPrompts({
  config: { systemVariant: null, prompts: null },
  pool,
  egress,
})

/** Resolves when the second process has got a notice. */
const heard = { notice: Promise.withResolvers<string>(), listening: Promise.withResolvers<void>() }
const watched: Companion = {
  onNotification: (channel, payload) => {
    companion.onNotification(channel, payload)
    if (channel === 'muster_prompt') heard.notice.resolve(payload)
  },
  onListening: () => {
    companion.onListening?.()
    heard.listening.resolve()
  },
}
second.worker.join(watched)

/** A missing notice fails a test; the test does not hang. */
const inTime = { timeout: 20_000 }
const key = { projectId, promptId: 'research_agent', variantId: 'blue' }
const save = (content: string) =>
  inTransaction(pool, (tx) =>
    savePrompt(tx, key, { messages: [{ role: 'system', content }] }, { shipped: services.shipped, actor: systemActor }),
  )
const read = async () => (await library.get(projectId, 'research_agent', 'blue')).messages[0]?.content

test('a change in one process reaches the other, which then reads the new prompt', inTime, async () => {
  assert.match((await read()) ?? '', /researcher/)
  await save('changed')
  assert.equal(await heard.notice.promise, `${projectId} research_agent blue`)
  assert.equal(await read(), 'changed')
})

test('a process whose listening connection was cut forgets all prompts that it read before', inTime, async () => {
  await read()
  await pool.query('alter table prompt_versions disable trigger user')
  // There is no notice, as if it was sent while nobody listened.
  await pool.query(`update prompt_versions set messages = '[{"role":"system","content":"unheard"}]' where version = 2`)
  assert.equal(await read(), 'changed')
  await pool.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
     where application_name = 'muster-listener' and datname = current_database()`,
  )
  await heard.listening.promise
  assert.equal(await read(), 'unheard')
})

test('a change that is rolled back sends no notice', inTime, async () => {
  heard.notice = Promise.withResolvers()
  await assert.rejects(
    inTransaction(pool, async (tx) => {
      const write = { shipped: services.shipped, actor: systemActor }
      await savePrompt(tx, { ...key, promptId: 'undone' }, { messages: [{ role: 'user', content: 'x' }] }, write)
      throw new Error('undone')
    }),
    /undone/,
  )
  await save('done')
  assert.equal(await heard.notice.promise, `${projectId} research_agent blue`)
})

test('the variant of agents is blue unless SYSTEM_VARIANT names another', async () => {
  assert.equal((await resolve(projectId, 'transform_agent')).variantId, 'blue')
  const green = await openPrompts({ config: { systemVariant: 'green', prompts: null }, pool, egress })
  const [inBlue, inGreen] = [
    await resolve(projectId, 'transform_agent'),
    await green.resolve(projectId, 'transform_agent'),
  ]
  assert.equal(inGreen.variantId, 'green')
  assert.notDeepEqual(inGreen.messages, inBlue.messages)
})
