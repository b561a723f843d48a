// Bad input to agents, tasks, runs and their streams.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestApp } from '../../../test/kit/app.ts'
import {
  type BadRequest,
  conflict,
  dumpWithoutUse,
  invalid,
  json,
  missing,
  missingRun,
  refuses,
  send,
} from '../../../test/kit/bad-requests.ts'
import { insertRuns } from '../../../test/kit/runs.ts'
import { newId } from '../../kernel/id.ts'

const kit = await createTestApp()
const project = await kit.createProject()
const admin = (await kit.createKey(project.id, 'admin')).key
const base = `/api/projects/${project.id}`
const agent = await kit.createAgent(project.id, { name: 'taken' })
const disabled = await kit.createAgent(project.id, { enabled: false })
const junior = await kit.createAgent(project.id, { senior_id: agent.id })
const task = (await kit.call<{ id: string }>(`POST ${base}/tasks`, { body: { title: 'x' } })).body
const done = (await kit.call<{ id: string }>(`POST ${base}/tasks`, { body: { title: 'done' } })).body
await kit.call(`PATCH ${base}/tasks/${done.id}`, { body: { status: 'completed' } })

/** A run of the agent whose journal ends with these events. */
async function endedRun(kind: string, set: { status: 'completed' | 'paused'; pause_reason?: string }): Promise<string> {
  const [runId = ''] = await insertRuns(kit.pool, project.id, 1)
  await kit.pool.query('update agent_runs set agent_id = $2 where id = $1', [runId, agent.id])
  const events = [
    { kind: 'run.started', data: {} },
    { kind, data: { summary: null, pause_reason: set.pause_reason, call_id: 'call_1' } },
  ]
  await kit.services.journal.append({ runId, fence: 1, events, change: { set: { ...set, ended: true } } })
  return runId
}
const completed = await endedRun('run.completed', { status: 'completed' })
const timedOut = await endedRun('run.paused', { status: 'paused', pause_reason: 'timeout' })
const unknown = await endedRun('run.paused', { status: 'paused', pause_reason: 'outcome_unknown' })
const [waiting = ''] = await insertRuns(kit.pool, project.id, 1)
await kit.pool.query(`update agent_runs set status = 'paused', pause_reason = 'human' where id = $1`, [waiting])

const agents = `POST ${base}/agents`
const trigger = `POST ${base}/agents/${agent.id}/trigger`
const change = `PATCH ${base}/tasks/${task.id}`
const input = { input: 'x' }
const events = (id: string): string => `GET ${base}/runs/${id}/events`
const lastSeen = (id: string) => ({ headers: { 'last-event-id': id } })

const rows: BadRequest[] = [
  // Agents
  { name: 'an agent without a name', request: agents, body: { role: 'x' }, ...invalid },
  { name: 'an agent with an unknown field', request: agents, body: { name: 'a', color: 'red' }, ...invalid },
  { name: 'an agent that sets a read-only field', request: agents, body: { name: 'a', token_used: 0 }, ...invalid },
  { name: 'a name that is taken', request: agents, body: { name: 'taken' }, ...conflict },
  { name: 'an unknown flow type', request: agents, body: { name: 'a', flow_type: 'parallel' }, ...invalid },
  { name: 'tools that are no list', request: agents, body: { name: 'a', tools: 'http_fetch' }, ...invalid },
  { name: 'a tool with a space', request: agents, body: { name: 'a', tools: ['http fetch'] }, ...invalid },
  { name: 'a model that is a name', request: agents, body: { name: 'a', model: 'gpt' }, ...invalid },
  {
    name: 'a temperature of 3',
    request: agents,
    body: { name: 'a', model: { provider: 'p', name: 'm', temperature: 3 } },
    ...invalid,
  },
  { name: 'max_steps of 0', request: agents, body: { name: 'a', max_steps: 0 }, ...invalid },
  { name: 'a negative timeout', request: agents, body: { name: 'a', default_timeout: -1 }, ...invalid },
  { name: 'half a token', request: agents, body: { name: 'a', token_allocation: 0.5 }, ...invalid },
  {
    name: 'an unknown capability',
    request: agents,
    body: { name: 'a', capabilities: { canFly: true } },
    ...invalid,
  },
  {
    name: 'an event that objects do not have',
    request: agents,
    body: { name: 'a', reaction_config: { objectTypes: ['x'], events: ['read'] } },
    ...invalid,
  },
  { name: 'sequential without steps', request: agents, body: { name: 'a', flow_type: 'sequential' }, ...invalid },
  { name: 'steps without sequential', request: agents, body: { name: 'a', steps: [{ prompt: 'x' }] }, ...invalid },
  { name: 'a cron of words', request: agents, body: { name: 'a', cron_schedule: 'every day at noon now' }, ...invalid },
  { name: 'an unknown time zone', request: agents, body: { name: 'a', timezone: 'Mars/Olympus' }, ...invalid },
  { name: 'a malformed senior', request: agents, body: { name: 'a', senior_id: 'boss' }, ...invalid },
  {
    name: 'a senior below itself',
    request: `PATCH ${base}/agents/${agent.id}`,
    body: { senior_id: junior.id },
    ...invalid,
  },
  { name: 'a change to no name', request: `PATCH ${base}/agents/${agent.id}`, body: { name: null }, ...invalid },
  { name: 'an unknown agent', request: `GET ${base}/agents/${newId()}`, ...missing },
  { name: 'a malformed agent', request: `DELETE ${base}/agents/1`, ...missing },
  { name: 'a made-up cursor of agents', request: `GET ${base}/agents?cursor=abc`, ...invalid },
  // Triggers
  { name: 'a trigger without input', request: trigger, body: {}, ...invalid },
  { name: 'a trigger without a body', request: trigger, ...invalid },
  { name: 'an input that is a number', request: trigger, body: { input: 1 }, ...invalid },
  { name: 'an input that is a list', request: trigger, body: { input: ['x'] }, ...invalid },
  { name: 'an input that is null', request: trigger, body: { input: null }, ...invalid },
  { name: 'a NUL in an input', request: trigger, body: '{"input":{"a":"\\u0000"}}', headers: json, ...invalid },
  { name: 'a timeout of 0', request: trigger, body: { ...input, timeout: 0 }, ...invalid },
  { name: 'a timeout in words', request: trigger, body: { ...input, timeout: '1s' }, ...invalid },
  { name: 'a limit of 0 steps', request: trigger, body: { ...input, max_steps: 0 }, ...invalid },
  { name: 'a timeout beyond an integer', request: trigger, body: { ...input, timeout: 2_147_483_648 }, ...invalid },
  { name: 'a trigger with an unknown field', request: trigger, body: { ...input, model: 'x' }, ...invalid },
  { name: 'a malformed run to resume', request: trigger, body: { ...input, resume_run_id: 'x' }, ...invalid },
  { name: 'an unknown run to resume', request: trigger, body: { ...input, resume_run_id: newId() }, ...missingRun },
  { name: 'a completed run to resume', request: trigger, body: { ...input, resume_run_id: completed }, ...conflict },
  { name: 'a disabled agent', request: `POST ${base}/agents/${disabled.id}/trigger`, body: input, ...conflict },
  { name: 'a trigger of an unknown agent', request: `POST ${base}/agents/${newId()}/trigger`, body: input, ...missing },
  { name: 'a trigger of a malformed agent id', request: `POST ${base}/agents/taken/trigger`, body: input, ...missing },
  {
    name: 'an Idempotency-Key of 256 characters for a trigger',
    request: trigger,
    body: input,
    headers: { 'idempotency-key': 'x'.repeat(256) },
    ...invalid,
  },
  // Runs
  { name: 'an unknown run', request: `GET ${base}/runs/${newId()}`, ...missingRun },
  { name: 'a malformed run', request: `GET ${base}/runs/x`, ...missingRun },
  { name: 'steps of an unknown run', request: `GET ${base}/runs/${newId()}/steps`, ...missingRun },
  { name: 'waits of an unknown run', request: `GET ${base}/runs/${newId()}/waits`, ...missingRun },
  { name: 'a made-up cursor of waits', request: `GET ${base}/runs/${completed}/waits?cursor=-1`, ...invalid },
  { name: 'a made-up cursor of steps', request: `GET ${base}/runs/${completed}/steps?cursor=-1`, ...invalid },
  { name: 'a status that runs do not have', request: `GET ${base}/runs?status=done`, ...invalid },
  { name: 'runs of a malformed agent', request: `GET ${base}/runs?agent_id=x`, ...invalid },
  { name: 'runs of a malformed parent', request: `GET ${base}/runs?parent_run_id=`, ...invalid },
  { name: 'two statuses', request: `GET ${base}/runs?status=failed&status=paused`, ...invalid },
  { name: 'an unknown filter', request: `GET ${base}/runs?agent=x`, ...invalid },
  { name: 'trying an unknown run', request: `POST ${base}/runs/${newId()}/try-now`, ...missingRun },
  { name: 'an unknown reason of a pause', request: `GET ${base}/runs?pause_reason=tired`, ...invalid },
  { name: 'cancelling an unknown run', request: `POST ${base}/runs/${newId()}/cancel`, ...missingRun },
  {
    name: 'a cancel with a body',
    request: `POST ${base}/runs/${completed}/cancel`,
    body: { why: 'x' },
    ...invalid,
  },
  { name: 'resuming a completed run', request: `POST ${base}/runs/${completed}/resume`, body: {}, ...conflict },
  { name: 'resuming a run that waits for people', request: `POST ${base}/runs/${waiting}/resume`, ...conflict },
  { name: 'resuming an unknown run', request: `POST ${base}/runs/${newId()}/resume`, body: {}, ...missingRun },
  {
    name: 'a resume without the outcome of the call',
    request: `POST ${base}/runs/${unknown}/resume`,
    body: {},
    ...invalid,
  },
  {
    name: 'an unknown word for an outcome',
    request: `POST ${base}/runs/${unknown}/resume`,
    body: { outcome: 'maybe' },
    ...invalid,
  },
  {
    name: 'an outcome for a run without an unknown outcome',
    request: `POST ${base}/runs/${timedOut}/resume`,
    body: { outcome: 'done' },
    ...invalid,
  },
  { name: 'a fork without a starting point', request: `POST ${base}/runs/${completed}/fork`, body: {}, ...invalid },
  {
    name: 'a fork after a step that does not exist',
    request: `POST ${base}/runs/${completed}/fork`,
    body: { after_step: 5 },
    ...invalid,
  },
  {
    name: 'a fork before the beginning',
    request: `POST ${base}/runs/${completed}/fork`,
    body: { after_step: -1 },
    ...invalid,
  },
  {
    name: 'a fork for an unknown agent',
    request: `POST ${base}/runs/${completed}/fork`,
    body: { after_step: 0, agent_id: newId() },
    ...missing,
  },
  {
    name: 'a fork for a disabled agent',
    request: `POST ${base}/runs/${completed}/fork`,
    body: { after_step: 0, agent_id: disabled.id },
    ...conflict,
  },
  // Streams
  { name: 'the stream of an unknown run', request: events(newId()), ...missingRun },
  { name: 'a Last-Event-ID of letters', request: events(completed), ...lastSeen('abc'), ...invalid },
  { name: 'a negative Last-Event-ID', request: events(completed), ...lastSeen('-1'), ...invalid },
  { name: 'a Last-Event-ID beyond the end', request: events(completed), ...lastSeen('3'), ...invalid },
  {
    name: 'a stream that is written to',
    request: `POST ${base}/runs/${completed}/events`,
    status: 405,
    code: 'METHOD_NOT_ALLOWED',
  },
  // Tasks
  { name: 'a task without a title', request: `POST ${base}/tasks`, body: {}, ...invalid },
  { name: 'a blank title', request: `POST ${base}/tasks`, body: { title: ' ' }, ...invalid },
  { name: 'a title of 501 characters', request: `POST ${base}/tasks`, body: { title: 'x'.repeat(501) }, ...invalid },
  { name: 'an unknown priority', request: `POST ${base}/tasks`, body: { title: 'x', priority: 'asap' }, ...invalid },
  { name: 'a task that sets its kind', request: `POST ${base}/tasks`, body: { title: 'x', kind: 'work' }, ...invalid },
  { name: 'a malformed assignee', request: `POST ${base}/tasks`, body: { title: 'x', assigned_to: 'me' }, ...invalid },
  {
    name: 'an unknown assignee',
    request: `POST ${base}/tasks`,
    body: { title: 'x', assigned_to: newId() },
    ...invalid,
  },
  {
    name: 'an unknown parent',
    request: `POST ${base}/tasks`,
    body: { title: 'x', parent_task_id: newId() },
    ...invalid,
  },
  { name: 'metadata that is a list', request: `POST ${base}/tasks`, body: { title: 'x', metadata: [] }, ...invalid },
  { name: 'an unknown task', request: `GET ${base}/tasks/${newId()}`, ...missing },
  { name: 'a malformed task', request: `PATCH ${base}/tasks/x`, body: {}, ...missing },
  { name: 'a status that nobody may set', request: change, body: { status: 'in-progress' }, ...invalid },
  { name: 'a task whose changes are set', request: change, body: { changes: [] }, ...invalid },
  { name: 'a task with another maker', request: change, body: { created_by: { type: 'user', id: null } }, ...invalid },
  { name: 'a task for an unknown agent', request: change, body: { assigned_to: newId() }, ...invalid },
  {
    name: 'a completed task that is completed again',
    request: `PATCH ${base}/tasks/${done.id}`,
    body: { status: 'completed', result: 'again' },
    ...conflict,
  },
  { name: 'a kind that tasks do not have', request: `GET ${base}/tasks?kind=todo`, ...invalid },
  { name: 'a status that tasks do not have', request: `GET ${base}/tasks?status=open`, ...invalid },
  { name: 'tasks of a malformed assignee', request: `GET ${base}/tasks?assigned_to=null`, ...invalid },
]

refuses(kit, admin, rows)

test('correct requests are accepted, so the rows above can fail', async () => {
  const right: [request: string, body: unknown, status: number][] = [
    [agents, { name: 'a' }, 201],
    [trigger, input, 202],
    [`POST ${base}/runs/${unknown}/resume`, { outcome: 'done', result: 1 }, 202],
    [`POST ${base}/runs/${completed}/fork`, { after_step: 0 }, 202],
    [`POST ${base}/tasks`, { title: 'x' }, 201],
    [change, { status: 'completed' }, 200],
  ]
  for (const [request, body, status] of right) {
    const before = await dumpWithoutUse(kit)
    const answer = await send(kit, admin, { request, body, headers: { prefer: 'respond-async' } })
    assert.equal(answer.statusCode, status, `${request} ${answer.body}`)
    assert.notDeepEqual(await dumpWithoutUse(kit), before)
  }
})
