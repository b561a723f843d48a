import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestApp } from '../../../test/kit/app.ts'
import type { RunChange } from '../../journal/run-change.ts'
import type { Run } from '../../kernel/run.ts'
import { runCompleted, waiting } from '../../runs/end.ts'
import { waitForRun } from './wait-for-run.ts'

// The kit has no worker: the test itself writes the events of the run.
const kit = await createTestApp()
const project = await kit.createProject()
const agent = await kit.createAgent(project.id)

async function pausedRun() {
  const headers = { prefer: 'respond-async' }
  const path = `/api/projects/${project.id}/agents/${agent.id}/trigger`
  const { body: run } = await kit.call<Run>(`POST ${path}`, { headers, body: { input: 'x' } })
  const tell = async ({ event, set }: { event: { kind: string; data: object }; set: RunChange['set'] }) => {
    const events = [{ kind: event.kind, data: { ...event.data } }]
    const told = await kit.services.journal.append({ runId: run.id, fence: null, events, change: set ? { set } : {} })
    assert.ok(told.status === 'written')
    return told.firstSeq
  }
  const seq = await tell(waiting('human', [], 0))
  const { body } = await kit.call<Run>(`GET /api/projects/${project.id}/runs/${run.id}`)
  assert.equal(body.status, 'paused')
  return { run: body, seq, tell }
}

test('the wait ends at once with a run that is paused', async () => {
  const { run } = await pausedRun()
  const { signal } = new AbortController()
  assert.equal((await waitForRun({ db: kit.pool, ...kit.services }, run, signal)).status, 'paused')
})

test('the wait goes on for a continued run, even if no worker has taken it and its row still says paused', async () => {
  const { run, seq, tell } = await pausedRun()
  const { signal } = new AbortController()
  const waited = waitForRun({ db: kit.pool, ...kit.services }, run, signal, seq)
  // The reads that begin at once come before this read.
  await kit.call(`GET /api/projects/${project.id}/runs/${run.id}`)
  await tell(runCompleted('Done.'))
  assert.equal((await waited).status, 'completed')
})

test('the wait ends with 404 when the project of a run that nobody takes up is deleted', {
  timeout: 20_000,
}, async () => {
  const own = await kit.createProject()
  const { id } = await kit.createAgent(own.id)
  const path = `/api/projects/${own.id}/agents/${id}/trigger`
  const { body: run } = await kit.call<Run>(`POST ${path}`, {
    headers: { prefer: 'respond-async' },
    body: { input: 'x' },
  })
  const waited = waitForRun({ db: kit.pool, ...kit.services }, run, new AbortController().signal)
  await Promise.all([assert.rejects(waited, { code: 'NOT_FOUND' }), kit.call(`DELETE /api/projects/${own.id}`)])
})
