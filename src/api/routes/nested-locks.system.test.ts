// Flow runs inside one another are locked from the inside outwards, by the journal and by the triggers alike.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestApp } from '../../../test/kit/app.ts'
import { flowCalls } from '../../../test/kit/flow-calls.ts'
import { recordStatements } from '../../../test/kit/query-plans.ts'
import { createScriptedModel } from '../../../test/kit/scripted-model.ts'
import { until } from '../../../test/kit/until.ts'
import { createFlowJournal } from '../../flows/execution/journal.ts'
import { endTokenWait } from '../../flows/execution/token-waits.ts'
import { silentLog } from '../../kernel/log.ts'
import type { Run } from '../../kernel/run.ts'
import type { Task } from '../../kernel/task.ts'

type List<Item> = { items: Item[] }

const model = createScriptedModel((request) =>
  JSON.stringify(request.prompt).includes('tool-result')
    ? { text: 'Done.' }
    : { calls: [{ name: 'ask_human', args: { question: 'May I?' } }] },
)
const kit = await createTestApp({ models: new Map([['script', model]]) })
const { pool } = kit
const project = await kit.createProject()
const base = `/api/projects/${project.id}`
const { start, ended } = flowCalls(kit, project.id)
const root = { type: 'task', id: 'ask', agent: 'asking', input: 'Go.' }
await kit.createAgent(project.id, { name: 'asking', tools: ['ask_human'] })
await kit.call(`POST ${base}/flows`, { body: { name: 'inner', root } })
await kit.createAgent(project.id, { name: 'inner', flow_type: 'flow', flow: 'inner', model: null })

/** A flow run, and the flow run that its leaf is, both of which wait for a person. */
async function startWaiting(): Promise<{ outer: string; inner: string; question: string }> {
  const { id: outer } = await start({ type: 'task', id: 'in', agent: 'inner', input: 'x' })
  await until(async () => {
    const { rows } = await pool.query(
      'select from flow_runs where id = $1 and all_wait_since is not null and owner is null',
      [outer],
    )
    return rows.length === 1
  }, 'both flow runs wait')
  const { items: runs } = (await kit.call<List<Run>>(`GET ${base}/runs?flow_run_id=${outer}`)).body
  const { items: tasks } = (await kit.call<List<Task>>(`GET ${base}/tasks?kind=escalation&status=pending`)).body
  return { outer, inner: runs[0]?.flow_run_id ?? '', question: tasks[0]?.id ?? '' }
}

async function hold(flowRunId: string): Promise<() => Promise<void>> {
  const client = await pool.connect()
  await client.query('begin')
  await client.query('select from flow_runs where id = $1 for no key update', [flowRunId])
  return async () => {
    await client.query('commit')
    client.release()
  }
}

const areWaiting = (count: number) => async (): Promise<boolean> => {
  const { rowCount } = await pool.query(
    `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
  )
  return rowCount === count
}

const isFree = (flowRunId: string): Promise<boolean> =>
  pool.query('select from flow_runs where id = $1 for no key update nowait', [flowRunId]).then(
    () => true,
    () => false,
  )

test('an answer to a leaf and a batch that writes the flow runs above it do not wait for each other', async () => {
  const journal = createFlowJournal({ db: pool, log: silentLog })
  for (const isOuterFirst of [true, false]) {
    const { outer, inner, question } = await startWaiting()
    const { statements, stop } = recordStatements(pool)
    const letGo = await hold(inner)
    const body = { status: 'completed', result: 'You may.' }
    const answered = kit.call(`PATCH ${base}/tasks/${question}`, { body })
    await until(areWaiting(1), 'the answer waits for the inner flow run')
    const runIds = isOuterFirst ? [outer, inner] : [inner, outer]
    const note = { kind: 'task.slow', data: { task_id: 'ask' } }
    const written = Promise.all(
      runIds.map((runId) => journal.append({ runId, fence: null, events: [note], change: { is_inner: true } })),
    )
    await until(areWaiting(2), 'the batch waits, too')
    assert.ok(await isFree(outer), 'the batch waits for the inner flow run before it locks the outer one')
    await letGo()
    assert.equal((await answered).status, 200)
    for (const each of await written) assert.equal(each.status, 'written')
    const batches = statements.filter(
      ({ text, values }) =>
        /entries as/.test(text) &&
        values.some((value) => String(value).includes(inner) && String(value).includes(outer)),
    )
    assert.equal(batches.length, 1, 'the batch was written at the first try')
    stop()
    assert.equal((await ended(outer)).status, 'completed')
  }
})

test('more time is given to the inner flow run first, whatever its id', async () => {
  for (let time = 0; time < 4; time++) {
    const { outer, inner, question } = await startWaiting()
    const letGo = await hold(inner)
    const { rows } = await pool.query(
      `update agent_runs set tokens_wait_since = muster.now() - interval '1 s'
       where id = (select parent_run_id from flow_runs where id = $1) returning id`,
      [inner],
    )
    const given = endTokenWait(pool, rows[0].id, outer)
    await until(areWaiting(1), 'the statement waits for the inner flow run')
    assert.ok(await isFree(outer))
    await letGo()
    await given
    await kit.call(`PATCH ${base}/tasks/${question}`, { body: { status: 'completed', result: 'You may.' } })
    assert.equal((await ended(outer)).status, 'completed')
  }
})
