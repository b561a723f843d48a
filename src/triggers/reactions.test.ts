import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { z } from 'zod'
import { createTestRuns } from '../../test/kit/run-worker.ts'
import { createScriptedModel, type Script } from '../../test/kit/scripted-model.ts'
import { until } from '../../test/kit/until.ts'
import { deleteAgent, updateAgent } from '../agents/agents.ts'
import { inTransaction } from '../db/transaction.ts'
import type { Agent, agentInput } from '../kernel/agent.ts'
import { newId } from '../kernel/id.ts'
import type { ModelRequest } from '../kernel/model-call.ts'
import type { GraphObject, ProcessingEntry } from '../kernel/object.ts'
import { systemActor } from '../kernel/principal.ts'
import { type Author, byAgent, byPerson } from '../objects/author.ts'
import type { ObjectChange } from '../objects/write-objects.ts'
import { writeStatements } from '../objects/write-statements.ts'
import { cancelRuns } from '../runs/cancel.ts'
import { resumeRun } from '../runs/resume.ts'
import { abandonStuck } from './abandon-stuck.ts'
import { followAgent } from './follow-agent.ts'
import { listEntries, retryEntry } from './processing-log.ts'
import { reactions } from './reactions.ts'

const runs = await createTestRuns()
const { pool, projectId, models, writer, worker } = runs
const by = { actor: systemActor, checkNames: async () => null, onChanged: followAgent }

let named = 0
async function reactor(
  objectTypes: string[],
  script: Script = () => ({ text: 'Seen.' }),
  { config = {}, ...input }: Partial<z.input<typeof agentInput>> & { config?: Record<string, unknown> } = {},
): Promise<Agent> {
  const name = `reactor ${++named}`
  models.set(name, createScriptedModel(script))
  return runs.createAgent({
    name,
    model: { provider: 'test', name },
    trigger_type: 'reaction',
    reaction_config: { objectTypes, ...config },
    tools: ['object_update', 'object_create', 'ask_human'],
    ...input,
  })
}

async function write(change: ObjectChange, author: Author = byPerson(systemActor)): Promise<GraphObject> {
  const outcome = await writer.write({ projectId, change, author })
  worker.onReady()
  return outcome.kind === 'written' ? outcome.object : assert.fail(outcome.kind)
}
const create = (type: string, author?: Author) => write({ op: 'create', type, key: null, properties: {} }, author)
const touch = (id: string, author?: Author) =>
  write({ op: 'update', id, properties: { touch: newId() }, expectedVersion: null }, author)

const entriesOf = async (agent: Agent): Promise<ProcessingEntry[]> =>
  (await listEntries(pool, agent.id, {}, { limit: 200 })).items
const isOpen = ({ status }: ProcessingEntry): boolean => status === 'pending' || status === 'processing'

async function settled(agent: Agent, count: number): Promise<ProcessingEntry[]> {
  for (;;) {
    const entries = await entriesOf(agent)
    if (entries.length >= count && !entries.some(isOpen)) return entries
    await new Promise(setImmediate)
  }
}
async function inStatus(agent: Agent, status: ProcessingEntry['status']): Promise<ProcessingEntry> {
  for (;;) {
    const [entry] = await entriesOf(agent)
    if (entry?.status === status) return entry
    await new Promise(setImmediate)
  }
}
const retry = (entry: ProcessingEntry, agentId = entry.agent_id) =>
  inTransaction(pool, (tx) => retryEntry(tx, { projectId, agentId, entryId: entry.id, actor: systemActor }))

/** The object in the model's request. */
function objectIn(request: ModelRequest): GraphObject {
  const user = request.prompt.find((message) => message.role === 'user')
  const part = user?.role === 'user' ? user.content[0] : undefined
  return (JSON.parse(part?.type === 'text' ? part.text : '{}') as { object: GraphObject }).object // written by reactions
}
/** The agent changes the object that triggered it, then ends. */
const touching: Script = (request) =>
  request.prompt.some((message) => message.role === 'assistant')
    ? { text: 'Done.' }
    : { calls: [{ name: 'object_update', args: { id: objectIn(request).id, properties: { touch: newId() } } }] }

/** Sends the same event once more, like a sender that is not sure whether it arrived. */
async function deliverAgain(object: GraphObject): Promise<void> {
  const sql = writeStatements(reactions({ isAnnounced: false })).create.text
  const again = `with change as (select $1::uuid as id, $2::uuid as project_id, $3::text as type, null::text as key,
    '{}'::jsonb as properties, $4::int as version, 'user' as actor_type, null::uuid as actor_id, 'created' as event,
    0 as depth, $5::uuid as delivery)${sql.slice(sql.indexOf(', chain as'), sql.lastIndexOf('select id, type'))} select 1`
  await pool.query(again, [object.id, projectId, object.type, object.version, newId()])
}

test('Skip Duplicate Processing: an event for the version that is being processed is skipped', async () => {
  const gate = Promise.withResolvers<void>()
  const agent = await reactor(['Twice'], () => ({ text: 'Seen.', waitFor: gate.promise }))
  const object = await create('Twice')
  await inStatus(agent, 'processing')
  for (let times = 0; times < 3; times++) await deliverAgain(object)
  assert.equal((await entriesOf(agent)).length, 1)
  // A newer version is always processed.
  await touch(object.id)
  gate.resolve()
  const entries = await settled(agent, 2)
  assert.deepEqual(
    entries.map((entry) => [entry.object_version, entry.event_type]),
    [
      [2, 'updated'],
      [1, 'created'],
    ],
  )
})

test('an agent that processes in parallel takes every event, also about the same version', async () => {
  const agent = await reactor(['Parallel'], undefined, { config: { concurrencyStrategy: 'parallel' } })
  const object = await create('Parallel')
  await deliverAgain(object)
  worker.onReady()
  assert.equal((await settled(agent, 2)).length, 2)
})

test('"*" means every type, once per event, beside a type that is named too', async () => {
  const agent = await reactor(['*', 'Star'], undefined, { config: { events: ['created'] } })
  await create('Star')
  await create('Other star')
  assert.equal((await settled(agent, 2)).length, 2)
  await deleteAgent(pool, projectId, agent.id, by)
})

test('a deleted object triggers with its last properties', async () => {
  const seen: string[] = []
  const agent = await reactor(
    ['Mortal'],
    (request) => {
      seen.push(JSON.stringify(objectIn(request).properties))
      return { text: 'Seen.' }
    },
    { config: { events: ['deleted'] } },
  )
  const { id } = await write({ op: 'create', type: 'Mortal', key: 'k', properties: { name: 'Ada' } })
  await write({ op: 'delete', id, expectedVersion: null })
  const [entry] = await settled(agent, 1)
  assert.deepEqual([entry?.event_type, entry?.object_version, seen], ['deleted', 2, ['{"name":"Ada"}']])
})

test("with ignoreAgentTriggered no agent's change triggers; without ignoreSelfTriggered its own does", async () => {
  const shy = await reactor(['Loop'], undefined, { config: { ignoreAgentTriggered: true } })
  const plain = await reactor(['Loop'])
  const vain = await reactor(['Loop'], undefined, { config: { ignoreSelfTriggered: false } })
  await create('Loop', byAgent(vain.id, { runId: null, depth: 0 }))
  await create('Loop', byAgent(plain.id, { runId: null, depth: 0 }))
  assert.equal((await settled(vain, 2)).length, 2)
  assert.equal((await settled(plain, 1)).length, 1)
  assert.equal((await entriesOf(shy)).length, 0)
})

test('two agents that answer each other stop at the chain limit, and the last entry says why', async () => {
  await runs.set({ reaction_chain_limit: 5 })
  const config = { config: { events: ['updated'] } }
  const ping = await reactor(['Ball'], touching, config)
  const pong = await reactor(['Ball'], touching, config)
  const { id } = await create('Ball')
  const first = await touch(id)
  assert.equal(first.version, 2)
  for (;;) {
    const entries = [...(await entriesOf(ping)), ...(await entriesOf(pong))]
    if (entries.some((entry) => entry.status === 'skipped') && !entries.some(isOpen)) break
    await new Promise(setImmediate)
  }
  const entries = [...(await entriesOf(ping)), ...(await entriesOf(pong))]
  const skipped = entries.filter((entry) => entry.status === 'skipped')
  const { rows } = await pool.query<{ chain_depth: number }>(
    'select distinct chain_depth from agent_runs where agent_id = any($1) order by 1',
    [[ping.id, pong.id]],
  )
  assert.deepEqual(
    rows.map((row) => row.chain_depth),
    [1, 2, 3, 4, 5],
  )
  assert.ok(skipped.length > 0)
  for (const entry of skipped) {
    assert.match(entry.error_message ?? '', /reaction_chain_limit is 5/)
    assert.equal(entry.run_id, null)
  }
  // A person may try the entry all the same; the changes of that run are still at the end of the chain.
  const retried = await retry(skipped[0] ?? assert.fail())
  worker.onReady()
  assert.equal((await runs.finished(retried.run_id ?? '')).status, 'completed')
  await runs.set({ reaction_chain_limit: 8 })
})

test('a disabled, changed or deleted agent reacts by its new definition from the commit on', async () => {
  const agent = await reactor(['Edited'])
  await create('Edited')
  await settled(agent, 1)
  await updateAgent(pool, projectId, agent.id, { enabled: false }, by)
  await create('Edited')
  await updateAgent(pool, projectId, agent.id, { enabled: true, reaction_config: config('Renamed') }, by)
  await create('Edited')
  await create('Renamed')
  assert.equal((await settled(agent, 2)).length, 2)
  await updateAgent(pool, projectId, agent.id, { trigger_type: 'manual' }, by)
  await create('Renamed')
  await updateAgent(pool, projectId, agent.id, { trigger_type: 'reaction' }, by)
  await deleteAgent(pool, projectId, agent.id, by)
  await create('Renamed')
  assert.equal((await entriesOf(agent)).length, 2)
})

const config = (type: string) => ({
  objectTypes: [type],
  events: ['created' as const],
  ignoreSelfTriggered: true,
  ignoreAgentTriggered: false,
  concurrencyStrategy: 'skip' as const,
})

test('only failed, abandoned or skipped entries are retried, each with a new run on the same version', async () => {
  let fails = true
  const versions: number[] = []
  const agent = await reactor(['Retried'], (request) => {
    versions.push(objectIn(request).version)
    return fails ? { fail: { message: 'Not yet.', isRetryable: false } } : { text: 'Now.' }
  })
  const { id } = await create('Retried')
  const [failed] = await settled(agent, 1)
  assert.equal(failed?.status, 'failed')
  await updateAgent(pool, projectId, agent.id, { enabled: false }, by)
  await assert.rejects(retry(failed ?? assert.fail()), { code: 'CONFLICT' })
  await touch(id)
  await updateAgent(pool, projectId, agent.id, { enabled: true }, by)
  fails = false
  const pending = await retry(failed ?? assert.fail())
  assert.deepEqual([pending.id, pending.status, pending.error_message], [failed?.id, 'pending', null])
  assert.notEqual(pending.run_id, failed?.run_id)
  await assert.rejects(retry(pending), { code: 'CONFLICT' })
  worker.onReady()
  const [completed] = await settled(agent, 1)
  assert.equal(completed?.status, 'completed')
  await assert.rejects(retry(completed ?? assert.fail()), { code: 'CONFLICT' })
  await assert.rejects(retry(completed ?? assert.fail(), newId()), { code: 'NOT_FOUND' })
  assert.deepEqual(versions, [1, 1])
})

test('two retries of one entry at once make one run', async () => {
  const agent = await reactor(['Raced'], () => ({ fail: { message: 'No.', isRetryable: false } }))
  await create('Raced')
  const [entry] = await settled(agent, 1)
  const tries = await Promise.allSettled([1, 2, 3, 4].map(() => retry(entry ?? assert.fail())))
  assert.equal(tries.filter((each) => each.status === 'fulfilled').length, 1)
})

test('a run that is cancelled, or pauses at a limit, fails its entry with the reason', async () => {
  const held = await reactor(['Cancelled'], () => ({ waitFor: 'abort' }))
  await create('Cancelled')
  const entry = await inStatus(held, 'processing')
  await cancelRuns(runs, projectId, [entry.run_id ?? ''])
  assert.match((await settled(held, 1))[0]?.error_message ?? '', /cancelled/)
  const limited = await reactor(['Limited'], touching, { max_steps: 1 })
  await create('Limited')
  const [paused] = await settled(limited, 1)
  assert.deepEqual([paused?.status, paused?.error_message], ['failed', 'The run was paused: step_limit.'])
})

test('an entry follows the run that resumes its first run: it is processing again, then ends so', async () => {
  const go = Promise.withResolvers<void>()
  let call = 0
  const agent = await reactor(
    ['Resumed'],
    async (request, number) => {
      if (request.toolChoice === 'none') return { text: 'So far.' }
      if (++call === 1) return touching(request, number)
      if (call === 2) return { fail: { message: 'Not yet.', isRetryable: false } }
      await go.promise
      return { text: 'Done.' }
    },
    { max_steps: 1 },
  )
  await create('Resumed')
  const [paused = assert.fail()] = await settled(agent, 1)
  assert.deepEqual([paused.status, paused.error_message], ['failed', 'The run was paused: step_limit.'])
  const resume = async (runId: string | null): Promise<string> => (await resumeRun(pool, projectId, runId ?? '', {})).id
  const failing = await resume(paused.run_id)
  const [taken] = await entriesOf(agent)
  assert.deepEqual([taken?.id, taken?.status, taken?.run_id], [paused.id, 'processing', failing])
  assert.deepEqual([taken?.error_message, taken?.completed_at], [null, null])
  await assert.rejects(retry(taken ?? assert.fail()), { code: 'CONFLICT' })
  worker.onReady()
  const [failed] = await settled(agent, 1)
  assert.deepEqual([failed?.status, failed?.error_message], ['failed', 'Not yet.'])
  // The first continuation failed; its own continuation takes the entry over from it.
  const second = await resume(failing)
  worker.onReady()
  assert.equal((await inStatus(agent, 'processing')).run_id, second)
  go.resolve()
  assert.equal((await settled(agent, 1))[0]?.status, 'completed')
})

test('an entry that was given up follows the run that resumes its cancelled run', async () => {
  let isStuck = true
  const agent = await reactor(['Given up'], () => (isStuck ? { waitFor: 'abort' } : { text: 'Done.' }))
  await create('Given up')
  const entry = await inStatus(agent, 'processing')
  await runs.clock.advance(10 * 60_000)
  await abandonStuck(runs)
  await runs.finished(entry.run_id ?? '')
  assert.equal((await inStatus(agent, 'abandoned')).run_id, entry.run_id)
  isStuck = false
  const resumed = await resumeRun(pool, projectId, entry.run_id ?? '', {})
  const [taken] = await entriesOf(agent)
  assert.deepEqual([taken?.status, taken?.run_id, taken?.error_message], ['processing', resumed.id, null])
  worker.onReady()
  const [ended] = await settled(agent, 1)
  assert.deepEqual([ended?.status, ended?.run_id], ['completed', resumed.id])
})

test('a retried entry continues its run, which cannot be resumed besides', async () => {
  const agent = await reactor(
    ['Elsewhere'],
    (request, number) =>
      request.toolChoice === 'none'
        ? { text: 'So far.' }
        : number === 1
          ? touching(request, number)
          : { text: 'Done.' },
    { max_steps: 1 },
  )
  await create('Elsewhere')
  const [paused = assert.fail()] = await settled(agent, 1)
  const retried = await retry(paused)
  const run = await runs.get(retried.run_id ?? '')
  assert.deepEqual([run.resumed_from, run.trigger.type, run.step_count], [paused.run_id, 'reaction', 2])
  await assert.rejects(resumeRun(pool, projectId, paused.run_id ?? '', {}), {
    code: 'CONFLICT',
    details: { run_id: run.id },
  })
  worker.onReady()
  const [ended] = await settled(agent, 1)
  assert.deepEqual([ended?.status, ended?.run_id], ['completed', retried.run_id])
})

test('the time a run waits for people does not make it stuck', async () => {
  const asks = await reactor(['Asked'], () => ({ calls: [{ name: 'ask_human', args: { question: 'May I?' } }] }))
  await create('Asked')
  const entry = await inStatus(asks, 'processing')
  await runs.finished(entry.run_id ?? '')
  await runs.clock.advance(10 * 60_000)
  await abandonStuck(runs)
  assert.equal((await entriesOf(asks))[0]?.status, 'processing')
  assert.equal((await runs.get(entry.run_id ?? '')).status, 'paused')
})

test('an entry is not stuck while the sub-run of its run waits, and is when the sub-run works too long', async () => {
  const gate = Promise.withResolvers<void>()
  let isDown = true
  let hasBegun = false
  const child = await reactor(['Never'], async () => {
    if (isDown) return { fail: { message: 'Down for a while.', isRetryable: true } }
    hasBegun = true
    await gate.promise
    return { text: 'Done.' }
  })
  const spawn = { calls: [{ name: 'spawn_agent', args: { agent: child.name, input: 'Go.' } }] }
  const parent = await reactor(['Handed on'], (_, call) => (call === 1 ? spawn : { text: 'Done.' }), {
    tools: ['spawn_agent'],
  })
  await create('Handed on')
  const entry = await inStatus(parent, 'processing')
  await until(async () => {
    const { rows } = await pool.query('select status from agent_runs where parent_run_id = $1', [entry.run_id])
    return rows[0]?.status === 'paused'
  }, 'the sub-run waits')
  await runs.clock.advance(10 * 60_000)
  await abandonStuck(runs)
  assert.equal((await entriesOf(parent))[0]?.status, 'processing')
  isDown = false
  await pool.query('delete from provider_waits')
  await pool.query(`update agent_runs set ready_at = muster.now() where waits_for = 'provider'`)
  worker.onReady()
  await until(() => Promise.resolve(hasBegun), 'the sub-run works')
  await runs.clock.advance(10 * 60_000)
  await abandonStuck(runs)
  assert.equal((await inStatus(parent, 'abandoned')).run_id, entry.run_id)
  gate.resolve()
})

test('a change that is rolled back starts no run', async () => {
  const agent = await reactor(['Rolled back'])
  await assert.rejects(
    inTransaction(pool, async (tx) => {
      const change = { op: 'create', type: 'Rolled back', key: null, properties: {} } as const
      await writer.writeIn(tx, { projectId, change, author: byPerson(systemActor) })
      throw new Error('no')
    }),
  )
  assert.deepEqual(await entriesOf(agent), [])
})

test('the runs of a reaction hand their depth down to their sub-runs', async () => {
  const child = await runs.createAgent({ name: 'deep child' })
  models.set(
    'script',
    createScriptedModel(() => ({ text: 'Done.' })),
  )
  const parent = await reactor(
    ['Deep'],
    (request) =>
      request.prompt.some((message) => message.role === 'assistant')
        ? { text: 'Done.' }
        : { calls: [{ name: 'spawn_agent', args: { agent: 'deep child', input: 'Go.' } }] },
    { tools: ['spawn_agent'] },
  )
  await create('Deep', byAgent(newId(), { runId: null, depth: 3 }))
  await settled(parent, 1)
  const { rows } = await pool.query('select agent_id, chain_depth from agent_runs where agent_id = any($1)', [
    [child.id, parent.id],
  ])
  assert.deepEqual(
    rows.map((row) => row.chain_depth),
    [4, 4],
  )
})

test('an entry is removed when the retention of runs removes its run', async () => {
  const agent = await reactor(['Kept'])
  await create('Kept')
  const [entry] = await settled(agent, 1)
  await pool.query('delete from agent_runs where id = $1', [entry?.run_id])
  assert.deepEqual(await entriesOf(agent), [])
})

test('entries queued for an agent that is then disabled do not start, and can be retried later', async () => {
  const gate = Promise.withResolvers<void>()
  const agent = await reactor(['Backlog'], () => ({ text: 'Seen.', waitFor: gate.promise }))
  // Of the 20 slots four are kept for other projects.
  for (let index = 0; index < 30; index++) await create('Backlog')
  while ((await entriesOf(agent)).filter((entry) => entry.status === 'processing').length < 16)
    await new Promise(setImmediate)
  await updateAgent(pool, projectId, agent.id, { enabled: false }, by)
  gate.resolve()
  const entries = await settled(agent, 30)
  const failed = entries.filter((entry) => entry.status === 'failed')
  assert.deepEqual([entries.length - failed.length, failed.length], [16, 14])
  for (const entry of failed) assert.match(entry.error_message ?? '', /disabled before this run began/)
  await updateAgent(pool, projectId, agent.id, { enabled: true }, by)
  const { run_id } = await retry(failed[0] ?? assert.fail())
  worker.onReady()
  assert.equal((await runs.finished(run_id ?? '')).status, 'completed')
})
