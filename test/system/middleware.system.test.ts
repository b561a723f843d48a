// The middleware of a real app module in a real server, which is killed between a hook and the commit of its step.
import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Run, Step } from '../../src/kernel/run.ts'
import { atEnd } from '../kit/at-end.ts'
import { createUnusedDatabase } from '../kit/database.ts'
import { type Muster, makeFolder, repository, startMuster } from '../kit/process.ts'
import { untilKilled } from '../kit/run-harness.ts'
import { until } from '../kit/until.ts'

const wholeFile = { after: atEnd }

test('after a kill between afterModel and the commit the hooks of the step are called again', async () => {
  const databaseUrl = await createUnusedDatabase()
  const file = join(await makeFolder(wholeFile), 'notes')
  await writeFile(file, '')
  const life = (faults?: string): Promise<Muster> =>
    startMuster(wholeFile, {
      databaseUrl,
      env: {
        MUSTER_APP: join(repository, 'test/fixtures/middleware-app.ts'),
        NOTES_FILE: file,
        MUSTER_ADMIN_TOKEN: 'one-token-for-all-servers',
        MUSTER_SECRET_KEY: 'one-key-for-all-servers',
        MUSTER_DEMO: 'off',
        ...(faults ? { MUSTER_FAULTS: faults } : {}),
      },
    })
  const notes = async (): Promise<string[]> => (await readFile(file, 'utf8')).split('\n').filter(Boolean)
  const first = await life('llm.after_reply_before_commit=kill')
  const project = (await first.call<{ id: string }>('POST /api/projects', { body: { name: 'checked' } })).body.id
  const path = `/api/projects/${project}`
  const model = { provider: 'offline', name: 'offline' }
  const agent = await first.call<{ id: string }>(`POST ${path}/agents`, { body: { name: 'Writer', model } })
  assert.equal(agent.status, 201, agent.text)
  // The server may be dead before it answers.
  await first
    .call(`POST ${path}/agents/${agent.body.id}/trigger`, { body: { input: 'Two lines about rain.' } })
    .catch(() => null)
  await untilKilled(first)
  assert.deepEqual(await notes(), ['beforeModel Writer 1', 'afterModel Writer 1'])

  const second = await life()
  const { body } = await second.call<{ items: Run[] }>(`GET ${path}/runs`)
  const id = body.items[0]?.id ?? assert.fail('there is no run')
  const read = async (): Promise<Run> => (await second.call<Run>(`GET ${path}/runs/${id}`)).body
  await until(async () => (await read()).completed_at !== null, 'the run has ended', 60_000)
  const run = await read()
  assert.equal(run.status, 'completed')
  assert.match(run.summary ?? '', /\S \[checked\]$/)
  assert.deepEqual(await notes(), [
    'beforeModel Writer 1',
    'afterModel Writer 1',
    'beforeModel Writer 1',
    'afterModel Writer 1',
  ])
  const steps = await second.call<{ items: Step[] }>(`GET ${path}/runs/${id}/steps`)
  assert.match(JSON.stringify(steps.body.items), /"request_changes":\{"system":"[^"]*\\nBe polite\."\}/)
  await second.stop()
})
