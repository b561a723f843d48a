// The middleware of the app module around the calls of a supervisor system, of its own nodes and of its specialists.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ADMIN_TOKEN } from '../../../test/kit/app.ts'
import { testTool } from '../../../test/kit/run-worker.ts'
import { createSupervisor, delegate, finish, type Replies, summary } from '../../../test/kit/supervisor.ts'
import type { Middleware } from '../../kernel/middleware.ts'

const look = testTool('look', async () => ({ found: 'Paris' }))
/** The hooks of the test under way. */
const middleware: Middleware[] = []
const use = (...hooks: Middleware[]): void => void middleware.splice(0, middleware.length, ...hooks)
const replies: Replies = {}
const kit = await createSupervisor(replies, { tools: [look], middleware })
const tooled = [kit.specialist('research_agent', ['look']), kit.specialist('transform_agent')]
assert.equal((await kit.put('blue', { ...kit.config, specialists: tooled })).status, 200)

const reply = (next: Replies): void => {
  for (const key of Object.keys(replies)) delete replies[key as keyof Replies]
  Object.assign(replies, next)
}
/**
 * A plan with one round of work. The rounds are counted in the run's own history, because every test asks the same
 * nodes.
 */
const oneRound = (request: { prompt: unknown }) =>
  JSON.stringify(request.prompt).includes('agent_name') ? finish() : delegate('research_agent')

test('middleware covers the supervisor’s own calls and its specialists’, each under its name', async () => {
  const seen: string[] = []
  use({
    beforeModel: ({ request, ctx }) => void seen.push(`ask ${ctx.agent} ${request.answer_schema?.name ?? 'text'}`),
    afterModel: ({ ctx }) => void seen.push(`said ${ctx.agent} ${ctx.step}`),
    beforeTool: ({ call, ctx }) => void seen.push(`call ${ctx.agent} ${call.name}`),
    afterTool: ({ ctx }) => void seen.push(`result ${ctx.agent} ${ctx.step}`),
  })
  reply({
    supervisor: oneRound,
    work: {
      research_agent: ({ prompt }) => (prompt.length > 2 ? 'It is Paris.' : { calls: [{ name: 'look', args: {} }] }),
    },
  })
  const { body } = await kit.run('What is the capital?')
  assert.equal(body.result.status, 'DONE', JSON.stringify(body))
  assert.deepEqual(seen, [
    'ask supervisor supervisor_decision',
    'said supervisor 1',
    'ask research_agent text',
    'said research_agent 1',
    'call research_agent look',
    'result research_agent 1',
    'ask research_agent text',
    'said research_agent 2',
    'ask research_agent agent_summary',
    'said research_agent 3',
    'ask supervisor supervisor_decision',
    'said supervisor 2',
    'ask finalizer text',
    'said finalizer 3',
  ])
})

test('a throw in a model hook of a specialist is a FAILED summary, and the supervisor goes on', async () => {
  for (const at of ['beforeModel', 'afterModel'] as const) {
    use({
      [at]: ({ ctx }: { ctx: { agent: string } }) => {
        if (ctx.agent === 'research_agent') throw new Error('not for you')
      },
    })
    reply({ supervisor: oneRound, finalizer: 'It could not be found.' })
    const { body } = await kit.run('What is the capital?')
    assert.equal(body.result.status, 'DONE', JSON.stringify(body))
    const [told] = body.result.supervisor_state.history
    assert.deepEqual([told?.agent_name, told?.result], ['research_agent', 'FAILED'])
    assert.match(told?.short_summary ?? '', new RegExp(`middleware\\[0\\]\\.${at} threw: not for you`))
    const [child] = await childrenOf(body.metadata.run_id)
    assert.equal(child?.error_code, 'MIDDLEWARE_ERROR')
  }
})

test('a throw in a model hook of the supervisor’s own call fails the run with MIDDLEWARE_ERROR', async () => {
  for (const node of ['supervisor', 'finalizer']) {
    use({
      afterModel: ({ ctx }) => {
        if (ctx.agent === node) throw new Error(`no ${node}`)
        return undefined
      },
    })
    reply({ supervisor: oneRound })
    const { status, body } = await kit.run('What is the capital?')
    assert.deepEqual([status, body.result.status, body.result.error?.code], [200, 'FAILED', 'MIDDLEWARE_ERROR'])
    assert.match(body.result.error?.message ?? '', new RegExp(`middleware\\[0\\]\\.afterModel threw: no ${node}`))
  }
})

test('a decision that a hook has changed is the decision that counts', async () => {
  use({
    afterModel: ({ response, ctx }) =>
      ctx.agent === 'supervisor' ? { ...response, text: JSON.stringify(finish()) } : undefined,
  })
  reply({ supervisor: delegate('research_agent'), finalizer: 'Nobody was asked.' })
  const { body } = await kit.run('What is the capital?')
  assert.deepEqual([body.result.status, body.result.output?.content], ['DONE', 'Nobody was asked.'])
  assert.deepEqual(await childrenOf(body.metadata.run_id), [])
})

for (const live of [false, true]) {
  test(`streaming parity with an afterModel that changes the answer${live ? ', live' : ''}: the tokens are the final text`, async () => {
    use({
      live,
      afterModel: ({ response, ctx }) => (ctx.agent === 'finalizer' ? { ...response, text: 'It is ***.' } : undefined),
    })
    reply({ supervisor: finish(), finalizer: { textParts: ['It is ', 'a secret', '.'], text: 'It is a secret.' } })
    const { body: text } = await kit.app.inject({
      method: 'POST',
      url: '/v1/agent/run',
      headers: { ...kit.headers, authorization: `Bearer ${ADMIN_TOKEN}` },
      payload: { input: { task: 'Tell me.' }, options: { stream: true } },
    })
    const events = text
      .trim()
      .split('\n')
      .map(
        (line) =>
          JSON.parse(line) as {
            event_type: string
            data: { text?: string; reset?: true; output?: { content: string } }
          },
      )
    let shown = ''
    for (const { event_type: type, data } of events) {
      if (type === 'token') shown += data.text
      if (data.reset) shown = ''
    }
    const final = events.at(-1)
    assert.deepEqual([final?.event_type, final?.data.output?.content, shown], ['final', 'It is ***.', 'It is ***.'])
    if (!live) assert.doesNotMatch(text, /secret/)
  })
}

async function childrenOf(runId: string): Promise<{ error_code: string | null }[]> {
  const { items } = await kit.get<{ items: { error_code: string | null }[] }>(`/runs?parent_run_id=${runId}`)
  return items
}

test('a cancel ends a hook that hangs in the supervisor’s own call', async () => {
  const reached = Promise.withResolvers<string>()
  use({
    beforeModel: ({ ctx }) => {
      reached.resolve(ctx.run_id)
      return new Promise<never>(() => {})
    },
  })
  reply({ supervisor: finish() })
  const running = kit.run('Tell me.')
  const runId = await reached.promise
  assert.equal((await kit.call(`POST ${kit.base}/runs/${runId}/cancel`, { body: {} })).status, 200)
  const { body } = await running
  assert.deepEqual([body.result.status, body.result.error?.code], ['FAILED', 'CANCELLED'])
})

test('the supervisor reads the summary that a hook has changed', async () => {
  use({
    afterModel: ({ response, ctx }) =>
      ctx.agent === 'research_agent' && response.text.includes('short_summary')
        ? { ...response, text: JSON.stringify(summary('NEEDS_ASSISTANCE', 'Somebody should look again.')) }
        : undefined,
  })
  reply({ supervisor: oneRound })
  const { body } = await kit.run('What is the capital?')
  const [told] = body.result.supervisor_state.history
  assert.deepEqual([told?.result, told?.short_summary], ['NEEDS_ASSISTANCE', 'Somebody should look again.'])
})
