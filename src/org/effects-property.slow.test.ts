// Random scripts of answers, failures, deaths, cancels, resumes and retries, over a run, a task, a leaf and a flow: each
// keyed effect happens once per call of the model, and each unsafe one once, or a person was asked before the second.
// test/kit/check-effects.ts states the promise precisely.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createTestApp } from '../../test/kit/app.ts'
import { checkEffects } from '../../test/kit/check-effects.ts'
import { type EffectScript, effectOfTool, readRequest, scriptsOf } from '../../test/kit/effect-script.ts'
import { createEffectWork, type EffectServers, type EffectWork } from '../../test/kit/effect-work.ts'
import { howMany, seeds } from '../../test/kit/how-many.ts'
import { testTool } from '../../test/kit/run-worker.ts'
import { createScriptedModel, type ScriptedAnswer } from '../../test/kit/scripted-model.ts'
import { inBoth, isUsual } from '../../test/kit/tiers.ts'
import { createJournal } from '../journal/append.ts'
import { takeOver } from '../journal/take-over.ts'
import { silentLog } from '../kernel/log.ts'
import type { Model, ModelRequest } from '../kernel/model-call.ts'
import { forgetWorker } from '../queue/workers.ts'
import { closeCalls } from '../tasks/close-questions.ts'

const AT_ONCE = 10
const SEQUENCES_PER_SEED = isUsual ? 20 : 100

const models = new Map<string, Model>()
const works = new Map<string, EffectWork>()
const happened = new Map<string, number>()
const count = (what: string): void => void happened.set(what, (happened.get(what) ?? 0) + 1)
let order = 0

const workOf = (projectId: string): EffectWork => works.get(projectId) ?? assert.fail('a call of an unknown project')

/** A call of a tool, with its effect outside and the fault that befalls it. */
const tools = Object.entries(effectOfTool).map(([name, effect]) =>
  testTool(
    name,
    async (args, { key, run_id: run, project_id: projectId }) => {
      if (effect === 'readonly') return { seen: true }
      const work = workOf(projectId)
      const fault = work.faultOfCall()
      if (fault) count(fault)
      if (fault === 'dies before' && (await loseRun(run))) return { lost: true }
      work.note({ tool: name, args, key, run })
      if (fault === 'dies after') await bury()
      if (fault === 'throws') throw new Error('the service broke the connection')
      return { receipt: order }
    },
    { effect },
  ),
)

const kit = await createTestApp({
  models,
  tools,
  functions: {
    note: async (args: unknown, { key, run_id: run, project_id: projectId }) => {
      const work = workOf(projectId)
      const fault = work.faultOfCall()
      work.note({ tool: 'note', args, key, run })
      if (fault === 'dies before' || fault === 'dies after') await bury()
      if (fault === 'throws') throw new Error('the function is broken')
      return 'noted'
    },
  },
  firstBackoffMs: 1,
  leaseMs: 900,
  waits: { cancelWaitMs: 50 },
})
const { pool } = kit

/** Declares the process dead: its work is free, and it comes back under another name. */
async function bury(): Promise<void> {
  count('deaths')
  const { rows } = await pool.query<{ id: string }>('select id from workers')
  const journal = createJournal({ db: pool, log: silentLog })
  for (const { id } of rows) await takeOver({ pool, journal, onEnded: closeCalls }, id, (tx) => forgetWorker(tx, id))
  kit.services.onReady()
  kit.services.flows.onReady()
}

/** False if the run was not the process's any more or is it still, so that the call must have its effect. */
async function loseRun(runId: string): Promise<boolean> {
  const fenceOf = async () =>
    (await pool.query<{ fence: number }>('select fence from agent_runs where id = $1', [runId])).rows[0]?.fence
  const before = await fenceOf()
  await bury()
  return (await fenceOf()) !== before
}

const servers: EffectServers = {
  call: (route, body) =>
    kit.call(route, {
      ...(body ? { body } : {}),
      ...(/trigger$|resume$|POST .*flow-runs/.test(route) ? { headers: { prefer: 'respond-async', ...json } } : {}),
    }),
  die: bury,
  nextOrder: () => ++order,
  provider: 'test',
}
const json = { 'content-type': 'application/json' }

const DECISIONS: Record<string, ScriptedAnswer> = {
  delegation_decision: { text: JSON.stringify({ delegate: false, subordinate: null, reasoning: 'Mine.' }) },
  task_plan: { text: JSON.stringify({ subtasks: [] }) },
}

let named = 0

/** Plays the script to its end. Returns every fault that was found. */
async function play(script: EffectScript): Promise<string[]> {
  const name = `work ${++named}`
  let own: EffectWork | null = null
  const answer = async (request: ModelRequest): Promise<ScriptedAnswer> => {
    const decision = DECISIONS[request.answerSchema?.name ?? '']
    if (decision) return decision
    const { leaf, results } = readRequest(request)
    return own?.answer(leaf, results) ?? assert.fail('the work has not begun')
  }
  models.set(name, createScriptedModel(answer))
  const work = await createEffectWork(servers, script, name, (created) => {
    own = created
    works.set(created.projectId, created)
  })
  await work.begin()
  const record = await work.seeThrough()
  count(record.isCompleted ? 'completed' : 'not completed')
  for (const { is } of record.decisions) count(is)
  count(script.place)
  const complaints = await checkEffects(pool, work.projectId, record)
  return complaints.map((complaint) => `${complaint}; ${JSON.stringify({ script, record })}`)
}

const scripts = scriptsOf(['run', 'task', 'task', 'leaf', 'flow'])

for (const seed of seeds(isUsual ? 1 : howMany(2, 50))) {
  inBoth(`${SEQUENCES_PER_SEED} random scripts have each effect once, or ask (MUSTER_TEST_SEED=${seed})`, async () => {
    const property = fc.asyncProperty(fc.array(scripts, { minLength: AT_ONCE, maxLength: AT_ONCE }), async (batch) =>
      assert.deepEqual((await Promise.all(batch.map(play))).flat(), []),
    )
    // What happens depends on the machine too, so a smaller script would often pass.
    await fc.assert(property, { numRuns: SEQUENCES_PER_SEED / AT_ONCE, seed, endOnFailure: true })
  })
}

test('some random work was completed, processes died, and people were asked', (t) => {
  t.diagnostic(JSON.stringify(Object.fromEntries(happened)))
  // Twenty scripts may need no fresh start.
  const expected = ['completed', 'deaths', ...(isUsual ? [] : ['again', 'not_done'])]
  for (const what of expected) assert.ok((happened.get(what) ?? 0) > 0, `nothing was ${what}`)
})

const quiet = { modelFaults: [], callFaults: [], patience: 0, choices: [2, 2, 2, 2, 2, 2, 2, 2] }
const refundThenFail: EffectScript = {
  ...quiet,
  place: 'task',
  plans: [[[{ tool: 'refund', to: 'a' }]]],
  modelFaults: [{ at: 2, what: 'fail' }],
}
const notifyThenPass: EffectScript = {
  ...quiet,
  place: 'task',
  plans: [[[{ tool: 'notify', to: 'a' }], [{ tool: 'look', to: 'a' }]]],
  modelFaults: [{ at: 2, what: 'pass' }],
}

/** Plays on a faulty server that changes each new run like this. */
async function playFaulty(change: string, script: EffectScript): Promise<string[]> {
  await pool.query(`
    create or replace function be_faulty() returns trigger language plpgsql as $$ begin ${change}; return new; end $$;
    create trigger be_faulty before insert on agent_runs for each row execute function be_faulty()`)
  try {
    return await play(script)
  } finally {
    await pool.query('drop trigger be_faulty on agent_runs')
  }
}

test('these tests find out a server that begins anew instead of continuing', async () => {
  assert.deepEqual(await play(refundThenFail), [])
  const complaints = await playFaulty(
    "new.base_run_id := null; new.base_seq := null; new.resumed_from := null; new.input := to_jsonb('Again.'::text)",
    refundThenFail,
  )
  assert.match(complaints.join('\n'), /^p0\.0\.0 \(refund\) was executed 2 times, and nobody was asked;/)
})

test('these tests find out a server whose keys follow the run and not the work', async () => {
  assert.deepEqual(await play(notifyThenPass), [])
  const complaints = await playFaulty('new.key_scope := new.id::text', notifyThenPass)
  assert.match(complaints.join('\n'), /^p0\.0\.0 \(notify\) was executed under 2 keys;/)
})
