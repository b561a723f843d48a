// A queen's flow that is tried again or resumed keeps her plan and the finished subtasks. An answer of hers that did not
// fit is no decision, and she is asked anew.
import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import { createTestFlows } from '../../../test/kit/flows.ts'
import { testTool } from '../../../test/kit/run-worker.ts'
import { createScriptedModel, type ScriptedAnswer } from '../../../test/kit/scripted-model.ts'
import { until } from '../../../test/kit/until.ts'
import type { Db } from '../../db/pool.ts'
import { inTransaction } from '../../db/transaction.ts'
import { wakeWaiting } from '../../journal/wake.ts'
import type { ModelRequest } from '../../kernel/model-call.ts'
import { systemActor } from '../../kernel/principal.ts'
import type { Task } from '../../kernel/task.ts'
import { endHeld } from '../../runs/held-run.ts'
import { listTasks } from '../../tasks/tasks.ts'
import { updateTask } from '../../tasks/update-task.ts'
import { type BuiltInNode, builtInPatterns } from '../machine/built-in-patterns.ts'
import { flowToResume } from './resume-flow.ts'
import { startFlow } from './start.ts'

const ledger: unknown[] = []
const refund = testTool('refund', async (args) => ({ receipt: ledger.push(args) }), { effect: 'unsafe' })
const flows = await createTestFlows({ tools: [refund] })
const { pool, projectId } = flows

const asked: string[] = []
const planRequests: string[] = []
let plans: unknown[] = []
let reviews: unknown[] = []
let work: (request: ModelRequest) => ScriptedAnswer
flows.models.set(
  'script',
  createScriptedModel((request) => {
    const decision = request.answerSchema?.name
    asked.push(decision ?? 'work')
    if (decision === undefined) return work(request)
    if (decision === 'queen_review') return { text: JSON.stringify(reviews.shift() ?? accept) }
    if (decision === 'queen_adjust') return { text: JSON.stringify({ action: 'split', subtasks: [subtask('half')] }) }
    planRequests.push(JSON.stringify(request.prompt))
    const plan = plans.length > 1 ? plans.shift() : plans[0]
    return { text: typeof plan === 'string' ? plan : JSON.stringify(plan) }
  }),
)
for (const name of ['queen', 'worker', 'other']) await flows.createAgent({ name, tools: ['refund'] })

beforeEach(() => {
  ledger.length = 0
  asked.length = 0
  planRequests.length = 0
  reviews = []
  work = () => ({ text: 'Done.' })
})

const accept = { acceptable: true, problems: [], report: 'All is well.' }
const subtask = (id: string, more: object = {}) => ({
  id,
  title: id,
  description: `Do ${id}.`,
  depends_on: [],
  workers: 1,
  ...more,
})
const root = (more: object = {}): BuiltInNode => ({
  type: 'hierarchical',
  queen: 'queen',
  workers: ['worker'],
  goal: 'Get it done',
  ...more,
})
const beginResume = async (flowRunId: string): Promise<string> => {
  const id = await inTransaction(pool, async (tx) =>
    startFlow(tx, await flowToResume(tx, projectId, flowRunId), systemActor, builtInPatterns),
  )
  flows.flowWorker.poke()
  return id
}
const resume = async (flowRunId: string) => flows.ended(await beginResume(flowRunId))
const failing = { fail: { message: 'The provider is broken.', isRetryable: false } }

test('a plan that does not fit is asked for once more, and the second answer counts', async () => {
  plans = ['No plan.', { subtasks: [subtask('a')] }]
  const flow = await flows.play(root())
  assert.deepEqual([flow.status, flow.output], ['completed', 'All is well.'])
  assert.deepEqual(asked, ['queen_plan', 'queen_plan', 'work', 'queen_review'])
})

test('after two plans that do not fit, a retry and a resume ask the queen anew', async () => {
  plans = ['No plan.', 'No plan.', 'No plan.', 'No plan.', { subtasks: [subtask('a')] }]
  const failed = await flows.play(root({ retry: { max_retries: 1, backoff: 0 } }))
  assert.equal(failed.status, 'failed')
  assert.equal(asked.length, 4)
  const resumed = await resume(failed.id)
  assert.deepEqual([resumed.status, resumed.output], ['completed', 'All is well.'])
  assert.deepEqual(asked.slice(4), ['queen_plan', 'work', 'queen_review'])
})

test('a resumed flow run keeps a plan that fitted at the second try, and its finished subtasks', async () => {
  plans = ['No plan.', { subtasks: [subtask('first'), subtask('second', { depends_on: ['first'] })] }, 'No plan.']
  let isBroken = true
  work = ({ prompt }) => (isBroken && JSON.stringify(prompt).includes('Do second.') ? failing : { text: 'Done.' })
  const partial = await flows.play(root())
  assert.equal(partial.status, 'partial')
  asked.length = 0
  isBroken = false
  const resumed = await resume(partial.id)
  assert.equal(resumed.status, 'completed')
  assert.equal(asked.filter((name) => name === 'queen_plan').length, 0, 'the plan stands')
  assert.equal(asked.filter((name) => name === 'work').length, 1, 'the first subtask is not done again')
})

const results = ({ prompt }: ModelRequest): number => prompt.filter(({ role }) => role === 'tool').length
const isAbout = (request: ModelRequest, text: string): boolean => JSON.stringify(request.prompt).includes(text)

async function question(flowRunId: string): Promise<Task> {
  let found: Task | undefined
  await until(async () => {
    const open = await listTasks(pool, projectId, { kind: 'escalation', status: 'pending' }, { limit: 50 })
    found = open.items.find(({ metadata }) => metadata.flow_run_id === flowRunId)
    return found !== undefined
  }, 'people are asked')
  return found ?? assert.fail()
}
async function answer({ id, run_id }: Task, result: 'again' | 'stop'): Promise<void> {
  const onChanged = async (tx: Db): Promise<void> => {
    if (result === 'stop') await endHeld(tx, flows.journal, run_id ?? '')
    else await wakeWaiting(tx, run_id ?? '', 'human')
  }
  const given = { actor: systemActor, lockRun: async () => {}, onChanged }
  await updateTask(pool, projectId, id, { status: 'completed', result }, given)
  flows.worker.onReady()
}

test('the part of a subtask that was split after a refund asks first, and is told the refund', async () => {
  plans = [{ subtasks: [subtask('slow', { expected: 20 })] }]
  let isBroken = true
  let told = ''
  work = (request) => {
    if (isAbout(request, 'Do half.')) {
      told = JSON.stringify(request.prompt)
      return isBroken ? failing : { text: 'The rest is done.' }
    }
    return results(request) === 0 ? { calls: [{ name: 'refund', args: {} }] } : { text: 'Hm', waitFor: 'abort' }
  }
  const id = await flows.startFlow(root())
  const asked = await question(id)
  assert.equal(asked.metadata.kind, 'begin_anew')
  assert.deepEqual(
    (asked.metadata.calls as { tool: string }[]).map(({ tool }) => tool),
    ['refund'],
  )
  await answer(asked, 'again')
  const partial = await flows.ended(id)
  assert.equal(partial.status, 'partial')
  assert.match(told, /These calls have been made and stand:.*refund/)
  isBroken = false
  const resumed = await resume(id)
  assert.deepEqual([resumed.status, resumed.output], ['completed', 'All is well.'])
  assert.equal(ledger.length, 1, 'the subtask is not begun again in place of its part')
})

for (const result of ['again', 'stop'] as const) {
  test(`a second round after a refund of failed work asks once, before the queen plans: ${result}`, async () => {
    plans = [{ subtasks: [subtask('pay')] }, { subtasks: [subtask('repay'), subtask('write')] }]
    reviews = [{ acceptable: false, problems: ['The customer got no answer.'], report: 'Not done.' }]
    let isSecondRound = false
    const told: string[] = []
    work = (request) => {
      if (isSecondRound) told.push(JSON.stringify(request.prompt))
      if (isSecondRound) return { text: 'Done.' }
      return results(request) === 0 ? { calls: [{ name: 'refund', args: {} }] } : failing
    }
    const id = await flows.startFlow(root({ workers: ['worker', 'other'] }))
    const asking = await question(id)
    assert.equal(asking.metadata.kind, 'begin_anew')
    assert.deepEqual(
      (asking.metadata.calls as { tool: string }[]).map(({ tool }) => tool),
      ['refund'],
    )
    assert.equal(planRequests.length, 1, 'the second plan waits for the answer')
    isSecondRound = true
    await answer(asking, result)
    const flow = await flows.ended(id)
    assert.equal(ledger.length, 1)
    if (result === 'stop') {
      assert.deepEqual([flow.status, flow.output], ['partial', 'Not done.'])
      assert.match(flow.error ?? '', /The customer got no answer.*does not begin anew/s)
      return
    }
    assert.deepEqual([flow.status, flow.output], ['completed', 'All is well.'])
    assert.match(planRequests[1] ?? '', /These failed:.*refund {}.*The last result was not acceptable/s)
    assert.equal(told.length, 2)
    for (const text of told) assert.match(text, /These calls have been made and stand:.*refund/)
  })
}
