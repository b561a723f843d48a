import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createOrganisation, untilTrue } from '../../test/kit/organisation.ts'
import { type Log, silentLog } from '../kernel/log.ts'
import { createMetrics } from '../observe/metrics.ts'
import { measureOrg, type OrgMeasures } from './org-metrics.ts'

const metrics = createMetrics()
let measures: OrgMeasures | null = null
/** The organisation gets its log before the pool to measure exists. */
const tell = (level: keyof Log) => (fields: object, message: string) =>
  measures?.counting(silentLog)[level]({ ...fields }, message)
const log: Log = { debug: tell('debug'), info: tell('info'), warn: tell('warn'), error: tell('error') }
const org = await createOrganisation({ poll_interval: 100 }, { log, onEvents: (events) => measures?.onEvents(events) })
let nowMs = 0
measures = measureOrg(metrics, org.pool, { now: () => nowMs })

async function samples(): Promise<Map<string, number>> {
  const { text } = await metrics.render()
  const lines = text.split('\n').filter((line) => /^muster_(task|agent|month|refusal)/.test(line))
  return new Map(lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ')))]))
}
const sample = async (name: string): Promise<number> => (await samples()).get(name) ?? 0

test('all figures exist from the start, with labels of few values', async () => {
  await org.agent({ name: 'first' })
  const found = await samples()
  assert.equal(found.get('muster_task_queue_oldest_seconds'), 0)
  assert.equal(found.get('muster_agents{status="active"}'), 1)
  assert.equal(found.get('muster_agents{status="paused"}'), 0)
  assert.equal(found.get('muster_tasks_open{kind="work",status="pending"}'), 0)
  assert.equal(found.get('muster_agents_near_budget{percent="90"}'), 0)
  assert.equal(found.get('muster_month_tokens{kind="used"}'), 0)
  for (const name of found.keys()) {
    for (const [, value = ''] of name.matchAll(/="([^"]*)"/g)) assert.match(value, /^([a-z_-]{1,16}|90|95|100)$/, name)
  }
})

test('a task that waits for a stopped agent is open, and no part of the age of the queue', async () => {
  const agent = await org.agent({ name: 'away' })
  await org.post(`/agents/${agent.id}/stop`)
  await org.give({ title: 'Wait', assigned_to: agent.id })
  assert.equal(await sample('muster_tasks_open{kind="work",status="pending"}'), 1)
  assert.equal(await sample('muster_task_queue_oldest_seconds'), 0)
  assert.equal(await sample('muster_agents{status="paused"}'), 1)
})

test('decisions are counted by their effect', async () => {
  const helper = async (senior: string, name: string): Promise<void> => {
    await org.agent({ name, senior_id: senior, competencies: ['writing'] })
  }
  const plan = { subtasks: [{ title: 'A part', description: 'Do it.', competencies: [] }] }
  const answers = {
    delegates: { delegation_decision: { delegate: true, subordinate: 'helper of delegates', reasoning: '' } },
    splits: { task_plan: plan },
    misses: { delegation_decision: 'YESTERDAY' },
  }
  for (const [name, reply] of Object.entries(answers)) {
    const boss = await org.agent({ name }, reply)
    await helper(boss.id, `helper of ${name}`)
    const given = await org.give({ title: 'Decide', assigned_to: boss.id })
    await org.until(given.id, name === 'splits' ? 'in-progress' : 'completed')
  }
  const is = (name: string, value: number) =>
    untilTrue(async () => (await sample(`muster_task_decisions_total${name}`)) >= value, `${name} is counted`)
  await is('{decision="delegation",outcome="delegated"}', 1)
  await is('{decision="plan",outcome="split"}', 1)
  await is('{decision="delegation",outcome="misfit"}', 1)
  await is('{decision="plan",outcome="kept"}', 1)
  assert.equal(await sample('muster_task_decisions_total{decision="delegation",outcome="delegated"}'), 1)
})

test('refusals are counted as they happen', async () => {
  const senior = await org.agent(
    { name: 'greedy', token_allocation: 100_000 },
    {
      work: (request) => {
        const done = request.prompt.filter((message) => message.role === 'tool').length
        const calls = [
          { name: 'budget_add', args: { agent: 'nobody', tokens: 5 } },
          { name: 'task_list', args: { assigned_to: 'first' } },
          { name: 'task_update', args: { id: '00000000-0000-7000-8000-000000000000', status: 'cancelled' } },
        ]
        const call = calls[done]
        return call ? { calls: [call] } : { text: 'Done.' }
      },
    },
  )
  await org.agent({ name: 'poor one', senior_id: senior.id })
  const given = await org.give({ title: 'Ask for too much', assigned_to: senior.id })
  await org.until(given.id, 'completed')
  await untilTrue(async () => (await sample('muster_refusals_total{kind="task"}')) === 2, 'two of tasks are counted')
  assert.equal(await sample('muster_refusals_total{kind="budget"}'), 1)
})

test('attempts are counted by outcome, from the log lines about their end', async () => {
  const counting = measures?.counting(silentLog)
  const before = await sample('muster_task_attempts_total{outcome="timeout"}')
  counting?.info({ operation: 'attempt.ended', status: 'paused', pause_reason: 'timeout' }, '')
  counting?.info({ operation: 'attempt.ended', status: 'a new word', pause_reason: null }, '')
  counting?.info({ operation: 'task.completed', status: 'completed', pause_reason: 'timeout' }, '')
  assert.equal(await sample('muster_task_attempts_total{outcome="timeout"}'), before + 1)
  assert.equal(await sample('muster_task_attempts_total{outcome="other"}'), 1)
  assert.equal((await samples()).has('muster_task_attempts_total{outcome="a new word"}'), false)
})

test('the months of limited projects are read once a minute', async () => {
  const used = 'muster_month_tokens{kind="used"}'
  await org.patchSettings({ monthly_token_limit: 10_000_000 })
  assert.equal(await sample(used), 0)
  nowMs += 60_000
  assert.ok((await sample(used)) > 0)
  assert.equal(await sample('muster_month_tokens{kind="limit"}'), 10_000_000)
  await org.patchSettings({ monthly_token_limit: 1 })
  assert.equal(await sample('muster_month_projects_spent'), 0)
  nowMs += 60_000
  assert.equal(await sample('muster_month_projects_spent'), 1)
  await org.patchSettings({ monthly_token_limit: null })
})

test('attempts of a real organisation are counted once each', async () => {
  let tries = 0
  const agent = await org.agent(
    { name: 'tries twice' },
    { work: () => (++tries === 1 ? { fail: { message: 'No.', isRetryable: false } } : { text: 'Done.' }) },
  )
  const names = ['completed', 'failed', 'stopped', 'other'].map(
    (name) => `muster_task_attempts_total{outcome="${name}"}`,
  )
  const before = await Promise.all(names.map(sample))
  const given = await org.give({ title: 'Twice', assigned_to: agent.id })
  await org.until(given.id, 'completed')
  const after = await Promise.all(names.map(sample))
  assert.deepEqual(
    after.map((value, place) => value - (before[place] ?? 0)),
    [1, 1, 0, 0],
  )
})
