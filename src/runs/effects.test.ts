// Effects outside: the calls that may be made again when their owner died, and the calls that people decide about.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestRuns, testTool } from '../../test/kit/run-worker.ts'
import { buryWorker } from '../../test/kit/runs.ts'
import { createScriptedModel, type Script, type ScriptedAnswer } from '../../test/kit/scripted-model.ts'
import { loadState } from './load-state.ts'

const made: { tool: string; host: unknown; attempt: number }[] = []
let holdTools: Promise<void> | null = null
const write = {
  ...testTool('write', async (args, { attempt }) => {
    made.push({ tool: 'write', host: hostOf(args), attempt })
    await holdTools
    return { written: true }
  }),
  effect: 'unsafe' as const,
  effectOf: (args: unknown, { idempotent_hosts }: { idempotent_hosts: string[] }) =>
    idempotent_hosts.includes(String(hostOf(args))) ? ('keyed' as const) : ('unsafe' as const),
}
const hostOf = (args: unknown): unknown => (args as { host: string }).host // the script's own arguments

const ends: string[] = []
const gates = new Map<string, PromiseWithResolvers<void>>()
const wait = testTool('wait', async (args) => {
  const { name } = args as { name: string } // the script's own arguments
  await gates.get(name)?.promise
  ends.push(name)
  return { ended: name }
})

let emitFor = 0
const chatty = testTool('chatty', async (_args, { emit }) => {
  const until = performance.now() + emitFor
  let count = 0
  do {
    for (let burst = 0; burst < 100; burst++)
      emit({ count: ++count, padding: 'x'.repeat(count % 100 === 0 ? 40_000 : 10) })
    await new Promise(setImmediate)
  } while (performance.now() < until)
  return { count }
})

const runs = await createTestRuns({ tools: [write, wait, chatty], leaseMs: 900 })
const { pool } = runs

const script = (answers: readonly ScriptedAnswer[] | Script) => {
  const model = createScriptedModel(answers)
  runs.models.set('script', model)
  return model
}

/** Declares the only worker dead: its runs are free, and it comes back under another name. */
async function declareDead(): Promise<void> {
  const workers = () => pool.query<{ id: string }>('select id from workers')
  while ((await workers()).rowCount === 0) await new Promise(setImmediate)
  for (const { id } of (await workers()).rows) await buryWorker(pool, id)
}

test('the effect of a call follows its arguments and the project, and is decided when the call is announced', async () => {
  await runs.set({ idempotent_hosts: ['known.example'] })
  const hold = Promise.withResolvers<void>()
  holdTools = hold.promise
  made.length = 0
  script((_request, call) =>
    call === 1
      ? { calls: ['known.example', 'other.example'].map((host) => ({ name: 'write', args: { host } })) }
      : { text: 'written' },
  )
  const { id } = await runs.start(await runs.createAgent({ tools: ['write'] }))
  while (made.length < 2) await new Promise(setImmediate)
  holdTools = null
  // A change of the setting does not change calls that were announced before.
  await runs.set({ idempotent_hosts: ['other.example'] })
  await declareDead()
  runs.worker.onReady()
  const paused = await runs.finished(id)
  hold.resolve()
  assert.equal(paused.pause_reason, 'outcome_unknown')
  assert.deepEqual(
    made.map(({ host, attempt }) => [host, attempt]),
    [
      ['known.example', 1],
      ['other.example', 1],
      ['known.example', 2],
    ],
  )
  const { rows } = await pool.query(
    `select data->>'effect' as effect from run_events where run_id = $1 and kind = 'tool.started' order by seq`,
    [id],
  )
  assert.deepEqual(
    rows.map(({ effect }) => effect),
    ['keyed', 'unsafe'],
  )
})

test('results of several calls reach the model in the order of the calls, not in the order of their ends', async () => {
  const names = ['first', 'second', 'third', 'fourth']
  for (const name of names) gates.set(name, Promise.withResolvers<void>())
  ends.length = 0
  const begun = Promise.withResolvers<void>()
  const model = script((_request, call) => {
    if (call > 1) return { text: 'seen' }
    begun.resolve()
    const calls = names.map((name) => ({ name: 'wait', args: { name } }))
    // A call that is refused has its result before all others.
    return { calls: [...calls.slice(0, 2), { name: 'nothing', args: {} }, ...calls.slice(2)] }
  })
  const { id } = await runs.start(await runs.createAgent({ tools: ['wait'] }))
  await begun.promise
  for (const [index, name] of names.toReversed().entries()) {
    gates.get(name)?.resolve()
    while (ends.length <= index) await new Promise(setImmediate)
  }
  await runs.finished(id)
  assert.deepEqual(ends, names.toReversed())
  const results = (prompt: readonly { role: string; content: unknown }[] = []) =>
    prompt.flatMap(({ role, content }) =>
      role === 'tool' ? (content as { toolCallId: string }[]).map(({ toolCallId }) => toolCallId) : [],
    )
  assert.deepEqual(results(model.requests[1]?.prompt), ['call_1_1', 'call_1_2', 'call_1_3', 'call_1_4', 'call_1_5'])
  // The process that takes the run over reads its journal, in which the results stand in the order of their ends.
  const again = await loadState(pool, { id, base_run_id: null, base_seq: null })
  assert.deepEqual(results(again.messages), results(model.requests[1]?.prompt))
})

test('endless progress reports of a tool become a few events of a bounded size, the last report always among them', async () => {
  for (const lastsMs of [0, 1_000]) {
    emitFor = lastsMs
    script((_request, call) => (call === 1 ? { calls: [{ name: 'chatty', args: {} }] } : { text: 'said' }))
    const { id } = await runs.run(await runs.createAgent({ tools: ['chatty'] }))
    const { rows } = await pool.query<{ kind: string; size: number; data: { result: { count: number } } }>(
      `select kind, length(data::text) as size, data from run_events where run_id = $1 and kind like 'tool.%' order by seq`,
      [id],
    )
    const said = rows.filter(({ kind }) => kind === 'tool.progress')
    assert.ok(said.length >= 1 && said.length <= 2 + lastsMs / 250, `${said.length} events`)
    for (const { size } of said) assert.ok(size < 20_000, `${size} characters`)
    assert.equal(rows.at(-1)?.kind, 'tool.completed', 'the progress of a tool comes before its result')
    const { count } = rows.at(-1)?.data.result ?? assert.fail()
    assert.match(JSON.stringify(said.at(-1)?.data), new RegExp(`"count":${count}\\b|\\\\"count\\\\":${count}\\b`))
  }
})
