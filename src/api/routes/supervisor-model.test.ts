// A supervisor's run names the model of its last call, whichever node made the call.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSupervisor, delegate, finish } from '../../../test/kit/supervisor.ts'

type Model = { provider: string; name: string } | null
const modelOf = async (kit: Awaited<ReturnType<typeof createSupervisor>>, runId: string): Promise<Model> =>
  (await kit.get<{ model: Model }>(`/runs/${runId}`)).model

test('a run that is done has the model of the finalizer, and a specialist has its own', async () => {
  const kit = await createSupervisor({ supervisor: [delegate('research_agent'), finish()] })
  const { body } = await kit.run('Say hello.')
  assert.equal(body.result.status, 'DONE')
  assert.deepEqual(await modelOf(kit, body.metadata.run_id), { provider: 'test', name: 'finalizer' })
  const [told] = body.result.supervisor_state.history
  assert.deepEqual(await modelOf(kit, told?.step_id ?? ''), { provider: 'test', name: 'research_agent' })
})

test('while a specialist works, the run has the model of the supervisor', async (t) => {
  const begun = Promise.withResolvers<void>()
  const go = Promise.withResolvers<void>()
  const kit = await createSupervisor({
    supervisor: [delegate('research_agent'), finish()],
    work: {
      research_agent: async () => {
        begun.resolve()
        await go.promise
        return 'Found.'
      },
    },
  })
  const done = kit.run('Say hello.')
  await begun.promise
  t.after(() => go.resolve())
  const { items } = await kit.get<{ items: { id: string; parent_run_id: string | null }[] }>('/runs')
  const runId = items.find((run) => run.parent_run_id === null)?.id ?? ''
  assert.deepEqual(await modelOf(kit, runId), { provider: 'test', name: 'supervisor' })
  go.resolve()
  assert.equal((await done).body.result.status, 'DONE')
})

test('a run that waits for a person has the model that wrote the question', async () => {
  const kit = await createSupervisor({ supervisor: [{ plan: [], action: 'escalate' }, finish()] })
  const { body } = await kit.run('Ask me.')
  const { run_id: runId } = body.metadata
  assert.equal(body.result.status, 'ESCALATE')
  assert.deepEqual(await modelOf(kit, runId), { provider: 'test', name: 'escalation' })
  await kit.run('Go on.', { options: { run_id: runId } })
  assert.deepEqual(await modelOf(kit, runId), { provider: 'test', name: 'finalizer' })
})

test('a run whose finalizer is unavailable has the model that was called last', async () => {
  const kit = await createSupervisor(
    { supervisor: finish(), finalizer: { fail: { message: 'Down.', isRetryable: true } } },
    { firstBackoffMs: 1 },
  )
  const { status, body } = await kit.run('Wait for it.')
  assert.equal(status, 503)
  assert.deepEqual(await modelOf(kit, String(body.error?.details.run_id)), { provider: 'test', name: 'finalizer' })
})
