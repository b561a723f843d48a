import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestRuns, testTool } from '../../test/kit/run-worker.ts'
import { createScriptedModel, type Script } from '../../test/kit/scripted-model.ts'
import { cancelRuns } from './cancel.ts'
import { resumeRun } from './resume.ts'

const look = testTool('look', async () => 'ok')
const runs = await createTestRuns({ tools: [look], slots: 1 })
const { pool, projectId } = runs

const use = (name: string, script: Script) => {
  runs.models.set(name, createScriptedModel(script))
  return { provider: 'test', name }
}
const spawn = (agent: string, input: unknown = 'go', more = {}) => ({
  name: 'spawn_agent',
  args: { agent, input, ...more },
})
const childrenOf = async (id: string) =>
  (await pool.query('select * from agent_runs where parent_run_id = $1 order by created_at', [id])).rows

test('with one slot a chain of five sub-runs completes, and each sub-run names its parent', async () => {
  for (let depth = 1; depth <= 5; depth++) {
    const model = use(`chain${depth}`, (request) =>
      request.prompt.length > 2 || depth === 5 ? { text: `depth ${depth}` } : { calls: [spawn(`chain ${depth + 1}`)] },
    )
    await runs.createAgent({ name: `chain ${depth}`, model, tools: ['spawn_agent'] })
  }
  const model = use('top', (request) => (request.prompt.length > 2 ? { text: 'top' } : { calls: [spawn('chain 1')] }))
  const top = await runs.run(await runs.createAgent({ model, tools: ['spawn_agent'] }))
  assert.equal(top.status, 'completed')
  const { rows } = await pool.query('select depth, status, summary from agent_runs order by depth')
  assert.deepEqual(
    rows.map((row) => [row.depth, row.status]),
    [0, 1, 2, 3, 4, 5].map((depth) => [depth, 'completed']),
  )
})

test('past the depth limit a spawn is refused, and the model is told the reason', async () => {
  await runs.set({ spawn_depth_limit: 1 })
  const requests: string[] = []
  const model = use('deep', (request) => {
    requests.push(JSON.stringify(request.prompt))
    return request.prompt.length > 2 ? { text: 'ok' } : { calls: [spawn('deep one')] }
  })
  const agent = await runs.createAgent({ name: 'deep one', model, tools: ['spawn_agent'] })
  const top = await runs.run(agent)
  const [child] = await childrenOf(top.id)
  assert.equal((await childrenOf(child.id)).length, 0)
  const refused = (await runs.steps(child.id)).find((step) => step.kind === 'tool')
  assert.equal(refused?.blocked, 'spawn_depth')
  await runs.set({ spawn_depth_limit: 5 })
})

test('with one slot sixty parents with a child each all complete', async () => {
  const child = use('leaf', () => ({ text: 'leaf' }))
  await runs.createAgent({ name: 'leaf', model: child })
  const model = use('parent', (request) => (request.prompt.length > 2 ? { text: 'ok' } : { calls: [spawn('leaf')] }))
  const parent = await runs.createAgent({ model, tools: ['spawn_agent'] })
  const started = await Promise.all(Array.from({ length: 60 }, () => runs.start(parent)))
  const ended = await Promise.all(started.map(({ id }) => runs.finished(id)))
  assert.deepEqual([...new Set(ended.map((run) => run.status))], ['completed'])
})

test('several sub-runs of one step run side by side; their events stand in the parent’s stream, in its numbering', async () => {
  const child = use('worker', (request) => ({ text: `did ${JSON.stringify(request.prompt[1]?.content)}` }))
  await runs.createAgent({ name: 'worker', model: child })
  const model = use('boss', (request) =>
    request.prompt.length > 2 ? { text: 'ok' } : { calls: ['a', 'b', 'c'].map((input) => spawn('worker', { input })) },
  )
  const parent = await runs.run(await runs.createAgent({ model, tools: ['spawn_agent'] }))
  assert.equal(parent.status, 'completed')
  const children = await childrenOf(parent.id)
  assert.equal(children.length, 3)
  const { rows } = await pool.query('select seq, kind, data from run_events where run_id = $1 order by seq', [
    parent.id,
  ])
  assert.deepEqual(
    rows.map((row) => row.seq),
    rows.map((_, index) => index + 1),
  )
  for (const { id } of children) {
    const ofChild = rows.filter((row) => row.data.run_id === id).map((row) => row.kind)
    assert.deepEqual(ofChild, ['run.started', 'step.completed', 'run.completed'])
  }
  assert.equal(rows.at(-1).kind, 'run.completed')
  assert.equal(rows.at(-1).data.run_id, undefined)
  assert.equal(parent.usage.total_tokens, 30, 'a run counts its own calls')
})

test('an unknown or disabled agent, and arguments that do not fit, are error results', async () => {
  await runs.createAgent({ name: 'asleep', enabled: false })
  const model = use('wrong', (request) =>
    request.prompt.length > 2
      ? { text: 'ok' }
      : { calls: [spawn('nobody'), spawn('asleep'), { name: 'spawn_agent', args: { agent: 7 } }] },
  )
  const run = await runs.run(await runs.createAgent({ model, tools: ['spawn_agent'] }))
  assert.equal(run.status, 'completed')
  const results = (await runs.steps(run.id)).filter((step) => step.kind === 'tool')
  assert.deepEqual(
    results.map((step) => step.is_error),
    [true, true, true],
  )
})

test('a child never has more rights than its parent, and suggests if its parent suggests', async () => {
  const child = use('rights', () => ({ text: 'ok' }))
  await runs.createAgent({ name: 'rights', model: child, capabilities: { allowedObjectTypes: ['A', 'B'] } })
  const model = use('bounded', (request) => (request.prompt.length > 2 ? { text: 'ok' } : { calls: [spawn('rights')] }))
  const parent = await runs.createAgent({
    model,
    tools: ['spawn_agent'],
    execution_mode: 'suggest',
    capabilities: { canDeleteObjects: false, allowedObjectTypes: ['B', 'C'] },
  })
  const run = await runs.run(parent)
  const [row] = await childrenOf(run.id)
  assert.equal(row.rights.mode, 'suggest')
  assert.equal(row.rights.capabilities.canDeleteObjects, false)
  assert.deepEqual(row.rights.capabilities.allowedObjectTypes, ['B', 'C'])
})

test('cancelling a run cancels its sub-runs, parked and running, and every one of them ends', async () => {
  const asked = Promise.withResolvers<void>()
  const child = use('endless', () => {
    asked.resolve()
    return { text: 'on and on', waitFor: 'abort' }
  })
  await runs.createAgent({ name: 'endless', model: child })
  const model = use('caller', () => ({ text: 'I call', calls: [spawn('endless'), spawn('endless', 'two')] }))
  const { id } = await runs.start(await runs.createAgent({ model, tools: ['spawn_agent'] }))
  await asked.promise
  await cancelRuns(runs, projectId, [id])
  const run = await runs.finished(id)
  assert.equal(run.status, 'cancelled')
  assert.equal(run.summary, 'I call')
  for (const { id: childId } of await childrenOf(id)) assert.equal((await runs.finished(childId)).status, 'cancelled')
  assert.equal((await runs.kinds(id)).at(-1), 'run.cancelled')
  const { rows } = await pool.query(
    `select data->>'run_id' as child from run_events where run_id = $1 and kind = 'run.cancelled' order by seq`,
    [id],
  )
  assert.equal(rows.length, 3, 'the ends of the sub-runs stand in the stream before its own')
  assert.equal(rows[2].child, null)
})

test('a parent whose time is up cancels its sub-runs and winds down', async () => {
  const child = use('stuck', () => ({ waitFor: 'abort' }))
  await runs.createAgent({ name: 'stuck', model: child })
  const model = use('hurried', (request) =>
    request.toolChoice === 'none' ? { text: 'late' } : { calls: [spawn('stuck')] },
  )
  const other = await createTestRuns({ tools: [look], slots: 2, database: runs })
  const { id } = await runs.start(await runs.createAgent({ model, tools: ['spawn_agent'], default_timeout: 300 }))
  const run = await other.finished(id)
  assert.equal(run.pause_reason, 'timeout')
  assert.equal(run.summary, 'late')
  const [row] = await childrenOf(id)
  assert.equal((await other.finished(row.id)).status, 'cancelled')
  await other.worker.stop()
})

test('a sub-run that is resumed keeps its parent and its depth, and the parent’s end and stream are not touched', async () => {
  const child = use('tired', (request) =>
    request.toolChoice === 'none' ? { text: 'so far' } : { calls: [{ name: 'look' }] },
  )
  await runs.createAgent({ name: 'tired', model: child, tools: ['look'] })
  const model = use('patient', (request) =>
    request.prompt.length > 2 ? { text: 'ok' } : { calls: [spawn('tired', 'go', { max_steps: 1 })] },
  )
  const top = await runs.run(await runs.createAgent({ model, tools: ['spawn_agent'] }))
  const [paused] = await childrenOf(top.id)
  assert.equal(paused.pause_reason, 'step_limit')
  const before = await runs.kinds(top.id)
  use('tired', () => ({ text: 'rested' }))
  const resumed = await resumeRun(pool, projectId, paused.id, {})
  runs.worker.onReady()
  const run = await runs.finished(resumed.id)
  assert.deepEqual([run.status, run.parent_run_id, run.resumed_from], ['completed', top.id, paused.id])
  const { rows } = await pool.query('select depth, open_children from agent_runs where id = any($1) order by depth', [
    [top.id, run.id],
  ])
  assert.deepEqual(rows, [
    { depth: 0, open_children: 0 },
    { depth: 1, open_children: 0 },
  ])
  assert.deepEqual(await runs.kinds(top.id), before)
})

test('a run that is resumed cannot spawn deeper than the one it continues', async () => {
  await runs.set({ spawn_depth_limit: 1 })
  const child = use('digging', (request) =>
    request.toolChoice === 'none' ? { text: 'so far' } : { calls: [{ name: 'look' }] },
  )
  await runs.createAgent({ name: 'bottom', model: use('bottom', () => ({ text: 'bottom' })) })
  await runs.createAgent({ name: 'digging', model: child, tools: ['spawn_agent', 'look'] })
  const model = use('foreman', (request) =>
    request.prompt.length > 2 ? { text: 'ok' } : { calls: [spawn('digging', 'go', { max_steps: 1 })] },
  )
  const top = await runs.run(await runs.createAgent({ model, tools: ['spawn_agent'] }))
  const [paused] = await childrenOf(top.id)
  use('digging', (_request, call) => (call === 1 ? { calls: [spawn('bottom')] } : { text: 'tried' }))
  const { id } = await resumeRun(pool, projectId, paused.id, { max_steps: 5 })
  runs.worker.onReady()
  assert.equal((await runs.finished(id)).summary, 'tried')
  const refused = (await runs.steps(id)).find((step) => step.kind === 'tool')
  assert.equal(refused?.blocked, 'spawn_depth')
  await runs.set({ spawn_depth_limit: 5 })
})

test('spawn_agent resumes a paused run that its run started: as a sub-run, with its history, within its rights', async () => {
  let asked = ''
  const child = use('stopping', (request, call) => {
    if (request.toolChoice === 'none') return { text: 'so far' }
    asked = JSON.stringify(request.prompt)
    return call === 1 ? { calls: [{ name: 'look', args: { at: 'the beginning' } }] } : { text: 'all of it' }
  })
  const stopping = await runs.createAgent({ name: 'stopping', model: child, tools: ['look'] })
  let results: unknown[] = []
  const model = use('persistent', (request, call) => {
    results = resultsIn(request.prompt)
    if (call === 1) return { calls: [spawn('stopping', 'begin', { max_steps: 1 })] }
    const [{ run_id }] = results as [{ run_id: string }]
    return call === 2 ? { calls: [spawn('stopping', 'go on', { resume_run_id: run_id })] } : { text: 'ok' }
  })
  const agent = await runs.createAgent({
    model,
    tools: ['spawn_agent'],
    capabilities: { canDeleteObjects: false, allowedObjectTypes: ['Person'] },
  })
  const top = await runs.run(agent)
  assert.equal(top.status, 'completed')
  const [first, second] = await childrenOf(top.id)
  assert.deepEqual([first.pause_reason, second.status, second.resumed_from], ['step_limit', 'completed', first.id])
  assert.deepEqual([second.agent_id, second.depth, second.ancestors], [stopping.id, 1, [top.id]])
  assert.deepEqual(second.rights, first.rights)
  assert.deepEqual(second.trigger, {
    type: 'spawn',
    parent_run_id: top.id,
    call_id: 'call_2_1',
    resumed_from: first.id,
  })
  assert.match(asked, /begin.*the beginning.*so far.*go on/)
  assert.deepEqual(results[1], { run_id: second.id, status: 'completed', summary: 'all of it', error_message: null })
  assert.ok(second.step_count > first.step_count)
})

test('a resumed run may resume the sub-runs of its predecessor, each once; no other run may', async () => {
  const limited = use('limited', (request, call) =>
    request.toolChoice === 'none' ? { text: 'so far' } : call < 3 ? { calls: [{ name: 'look' }] } : { text: 'done' },
  )
  await runs.createAgent({ name: 'limited', model: limited, tools: ['look'] })
  await runs.createAgent({ name: 'another', model: limited })
  const starting = use('starting', (request) =>
    request.toolChoice === 'none' ? { text: 'later' } : { calls: [spawn('limited', 'begin', { max_steps: 1 })] },
  )
  const agent = await runs.createAgent({ model: starting, tools: ['spawn_agent'] })
  const first = await runs.run(agent, { max_steps: 1 })
  const [paused] = await childrenOf(first.id)
  const named = { resume_run_id: paused.id }
  /** The results of these calls, made by that run or by a stranger. */
  const tryIt = async (calls: object[], from?: string): Promise<string[]> => {
    const seen: string[] = []
    use('starting', (request, call) => {
      if (call === 1) return { calls: calls as never }
      seen.push(
        ...resultsIn(request.prompt)
          .slice(-calls.length)
          .map((result) => JSON.stringify(result)),
      )
      return { text: 'ok' }
    })
    if (!from) await runs.run(agent)
    else {
      const { id } = await resumeRun(pool, projectId, from, { max_steps: 10 })
      runs.worker.onReady()
      await runs.finished(id)
    }
    return seen
  }
  const [foreign = ''] = await tryIt([spawn('limited', 'go on', named)])
  assert.match(foreign, /names no run that you started/)
  const own = await tryIt(
    [spawn('another', 'go on', named), spawn('limited', 'go on', named), spawn('limited', 'again', named)],
    first.id,
  )
  assert.match(own[0] ?? '', /a run of another agent/)
  assert.match(own[1] ?? '', /"status":"(completed|paused)"/)
  assert.match(own[2] ?? '', /resumed already/)
  const { rowCount } = await pool.query('select from agent_runs where resumed_from = $1', [paused.id])
  assert.equal(rowCount, 1)
})

test('an agent cannot resume a run that waits for a person’s word about a call', async () => {
  const child = use('quiet', () => ({ text: 'quiet' }))
  await runs.createAgent({ name: 'quiet', model: child })
  let result = ''
  const model = use('hasty', async (request, call) => {
    if (call === 1) return { calls: [spawn('quiet')] }
    const [{ run_id }, next] = resultsIn(request.prompt) as [{ run_id: string }, unknown]
    result = JSON.stringify(next)
    if (call > 2) return { text: 'ok' }
    await pool.query(`update agent_runs set status = 'paused', pause_reason = 'outcome_unknown' where id = $1`, [
      run_id,
    ])
    return { calls: [spawn('quiet', 'go on', { resume_run_id: run_id })] }
  })
  await runs.run(await runs.createAgent({ model, tools: ['spawn_agent'] }))
  assert.match(result, /A person must first give the outcome/)
})

const resultsIn = (prompt: readonly { role: string; content: unknown }[]): unknown[] =>
  prompt.flatMap(({ role, content }) =>
    role === 'tool' ? (content as { output: { value: unknown } }[]).map(({ output }) => output.value) : [],
  )
