// Unsafe calls that were made and cut off before they answered: people decide, and nothing is repeated. Each effect comes
// late, into a ledger outside, whatever became of the call.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestRuns, testTool } from '../../test/kit/run-worker.ts'
import { createScriptedModel, type Script } from '../../test/kit/scripted-model.ts'
import { until } from '../../test/kit/until.ts'
import { inTransaction } from '../db/transaction.ts'
import { wakeWaiting } from '../journal/wake.ts'
import { OutcomeUnknown, type ToolEffect } from '../kernel/tool.ts'
import type { OutcomeTask } from '../tasks/outcome-tasks.ts'
import { cancelRun } from './cancel.ts'
import { loadState } from './load-state.ts'
import { resumeRun } from './resume.ts'
import { decideOutcome } from './undecided.ts'

const ledger: string[] = []
const begun: string[] = []
const gates = new Map<string, PromiseWithResolvers<void>>()
const gate = (label: string): PromiseWithResolvers<void> => {
  const made = Promise.withResolvers<void>()
  gates.set(label, made)
  return made
}

/** Ignores its signal, as a tool does that waits for another system. */
const slow = (name: string, effect: ToolEffect, timeoutMs: number | null = null) =>
  testTool(
    name,
    async (args) => {
      const { label } = args as { label: string } // the script's own arguments
      begun.push(label)
      await gates.get(label)?.promise
      ledger.push(label)
      return { paid: label }
    },
    { effect, timeoutMs },
  )

let answer: string | null = null
const runs = await createTestRuns({
  askHuman: {
    ask: async () => {},
    answers: async (ids) => new Map(ids.flatMap((id) => (answer === null ? [] : [[id, { answer, isRefused: false }]]))),
  },
  tools: [
    slow('refund', 'unsafe'),
    slow('quick_refund', 'unsafe', 50),
    slow('quick_pay', 'keyed', 50),
    slow('quick_look', 'readonly', 50),
    testTool(
      'broken',
      async () => {
        throw new OutcomeUnknown('The request failed: other side closed.')
      },
      { effect: 'unsafe' },
    ),
    testTool(
      'declined',
      async () => {
        throw new Error('The card was declined.')
      },
      { effect: 'unsafe' },
    ),
  ],
})
const { pool, projectId } = runs

const script = (answers: Script) => {
  const model = createScriptedModel(answers)
  runs.models.set('script', model)
  return model
}
const once = (...calls: { name: string; args: { label: string } }[]) =>
  script((_request, call) => (call === 1 ? { calls } : { text: 'done' }))
const agentWith = (...tools: string[]) => runs.createAgent({ tools })

const tasksOf = async (runId: string) =>
  (
    await pool.query<OutcomeTask>(
      'select id, kind, status, run_id, title, description, metadata, result from tasks where run_id = $1 order by id',
      [runId],
    )
  ).rows
const decide = (runId: string, input: Parameters<typeof resumeRun>[3]) =>
  inTransaction(pool, (tx) => resumeRun(tx, projectId, runId, input))
const finishDecided = async (runId: string, input: Parameters<typeof resumeRun>[3]) => {
  const resumed = await decide(runId, input)
  runs.worker.onReady()
  return runs.finished(resumed.id)
}
const settled = async (runId: string) => (await runs.steps(runId)).filter((step) => step.kind === 'tool')

test('a call past its own timeout is undecided: people are asked, and a late effect is not repeated', async () => {
  const hold = gate('timeout')
  const model = once({ name: 'quick_refund', args: { label: 'timeout' } })
  const paused = await runs.run(await agentWith('quick_refund'))
  assert.deepEqual([paused.status, paused.pause_reason], ['paused', 'outcome_unknown'])
  hold.resolve()
  await until(() => ledger.includes('timeout'), 'the effect comes late')
  assert.deepEqual(
    (await settled(paused.id)).map((step) => [step.name, step.result, step.outcome]),
    [['quick_refund', null, 'unknown']],
  )
  const [task, ...more] = await tasksOf(paused.id)
  assert.equal(more.length, 0)
  const { rows } = await pool.query<{ key: string; at: Date }>(
    `select data->>'key' as key, at from run_events where run_id = $1 and kind = 'tool.started'`,
    [paused.id],
  )
  assert.match(task?.description ?? '', /^The call of quick_refund did not answer within [\d.]+ s and was given up\./)
  assert.ok(task?.description.includes(`the idempotency key ${rows[0]?.key}`), task?.description)
  assert.ok(task?.description.includes(String(rows[0]?.at.toISOString().slice(0, 16))), task?.description)
  assert.ok(task?.description.includes('"label": "timeout"'))
  const ended = await finishDecided(paused.id, { outcome: 'done', result: { paid: 7 } })
  assert.deepEqual([ended.status, ledger.filter((label) => label === 'timeout').length], ['completed', 1])
  assert.deepEqual(JSON.stringify(model.requests[1]?.prompt.at(-1)).includes('{"paid":7}'), true)
  assert.equal((await tasksOf(paused.id))[0]?.status, 'completed')
})

test('the question about a call names the calls that the run has finished, with their keys', async () => {
  const hold = gate('second refund')
  script((_request, call) => {
    const [name, label] = call === 1 ? ['refund', 'first refund'] : ['quick_refund', 'second refund']
    return { calls: [{ name, args: { label } }] }
  })
  const paused = await runs.run(await agentWith('refund', 'quick_refund'))
  hold.resolve()
  const { rows } = await pool.query<{ key: string }>(
    `select data->>'key' as key from run_events where run_id = $1 and kind = 'tool.started' order by seq`,
    [paused.id],
  )
  const { description = '' } = (await tasksOf(paused.id))[0] ?? {}
  const line = '- refund {"label":"first refund"} → {"paid":"first refund"}'
  assert.ok(description.includes(`These calls have been made and stand:\n${line} (`), description)
  assert.ok(description.includes(`idempotency key ${rows[0]?.key})`), description)
  assert.ok(!description.includes('outcome unknown'), description)
})

test('a keyed or readonly call past its timeout is an error result, and what a tool throws is its result', async () => {
  for (const name of ['quick_pay', 'quick_look', 'declined']) {
    const hold = gate(name)
    once({ name, args: { label: name } })
    const ended = await runs.run(await agentWith(name))
    hold.resolve()
    assert.equal(ended.status, 'completed', name)
    assert.deepEqual(
      (await settled(ended.id)).map((step) => step.is_error),
      [true],
    )
  }
})

test('a call that the deadline of its run cut off is undecided, and that is why the run paused', async () => {
  const hold = gate('deadline')
  once({ name: 'refund', args: { label: 'deadline' } })
  const paused = await runs.run(await agentWith('refund'), { timeout: 300 })
  hold.resolve()
  assert.equal(paused.pause_reason, 'outcome_unknown')
  assert.match((await tasksOf(paused.id))[0]?.description ?? '', /^The time of the run was up [\d.]+ s after refund/)
})

test('a request whose connection broke after it was sent is undecided', async () => {
  once({ name: 'broken', args: { label: 'broken' } })
  const paused = await runs.run(await agentWith('broken'))
  assert.equal(paused.pause_reason, 'outcome_unknown')
  const sentence = 'The connection broke after the request of broken was sent: The request failed: other side closed.'
  assert.ok((await tasksOf(paused.id))[0]?.description.startsWith(sentence))
})

test('a call that a cancel cut off has no result: the journal leaves it undecided for a resume', async () => {
  await runs.set({ cancel_drain: 100 })
  const hold = gate('cancel')
  once({ name: 'refund', args: { label: 'cancel' } })
  const { id } = await runs.start(await agentWith('refund'))
  await until(() => begun.includes('cancel'), 'the call was made')
  await cancelRun(runs, projectId, id, async () => {})
  const ended = await runs.finished(id)
  hold.resolve()
  assert.equal(ended.status, 'cancelled')
  const kinds = await runs.kinds(id)
  assert.ok(kinds.includes('tool.cut_off') && !kinds.includes('tool.completed'), kinds.join())
  const { pending } = await loadState(pool, { id, base_run_id: null, base_seq: null })
  assert.deepEqual(
    [...pending.values()].map((call) => [call.name, call.isUnknown, call.cutOff?.reason]),
    [['refund', true, 'cancel']],
  )
  assert.deepEqual(await tasksOf(id), [], 'nobody is asked before somebody resumes the run')
})

test('several undecided calls: a task each, the decisions are kept, and the run continues with the last', async () => {
  const labels = ['one', 'two', 'three']
  const holds = labels.map(gate)
  const pause = async () => {
    const model = once(...labels.map((label) => ({ name: 'quick_refund', args: { label } })))
    return { model, paused: await runs.run(await agentWith('quick_refund')) }
  }
  const { model, paused } = await pause()
  const tasks = await tasksOf(paused.id)
  assert.deepEqual(tasks.map((task) => task.metadata.call_id).toSorted(), ['call_1_1', 'call_1_2', 'call_1_3'])
  assert.deepEqual(
    (await settled(paused.id)).map((step) => [step.call_id, step.outcome]),
    [
      ['call_1_1', 'unknown'],
      ['call_1_2', 'unknown'],
      ['call_1_3', 'unknown'],
    ],
  )
  const naming = /"call_1_1" \(quick_refund\), "call_1_2" \(quick_refund\), "call_1_3" \(quick_refund\)/
  await assert.rejects(decide(paused.id, { outcome: 'done' }), naming)
  await assert.rejects(decide(paused.id, { outcome: 'done', call_id: 'call_9' }), naming)
  const first = { outcome: 'done', call_id: 'call_1_2', result: { paid: 'two' } } as const
  await assert.rejects(decide(paused.id, { ...first, input: 'and hurry' }), /with the last of them/)
  assert.equal((await decide(paused.id, first)).id, paused.id, 'the run stays paused')
  await assert.rejects(decide(paused.id, first), /decided already/)
  // The next decision is made at the task.
  const task = tasks.find(({ metadata }) => metadata.call_id === 'call_1_1') ?? assert.fail()
  await inTransaction(pool, async (tx) => {
    await tx.query(`update tasks set status = 'completed', result = '"not_done"' where id = $1`, [task.id])
    assert.equal(await decideOutcome(tx, projectId, task, 'not_done'), null)
  })
  const ended = await finishDecided(paused.id, { outcome: 'done', input: 'and hurry' })
  assert.equal(ended.status, 'completed')
  assert.deepEqual(
    (await settled(ended.id)).map((step) => [step.call_id, step.is_error, step.result]),
    [
      ['call_1_1', true, { error: 'This call was not carried out. A person checked it.' }],
      ['call_1_2', false, { paid: 'two' }],
      ['call_1_3', false, { done: true }],
    ],
  )
  assert.equal(model.requests.length, 2)
  assert.deepEqual(new Set((await tasksOf(paused.id)).map((each) => each.status)), new Set(['completed']))
  for (const hold of holds) hold.resolve()
})

for (const isDecidedEarly of [true, false]) {
  test(`an undecided call beside a question is asked about at once, decided ${isDecidedEarly ? 'before' : 'after'} the question is answered`, async () => {
    const label = `beside a question ${isDecidedEarly}`
    const hold = gate(label)
    answer = null
    script((_request, call) =>
      call === 1
        ? {
            calls: [
              { name: 'ask_human', args: { question: 'Which colour?' } },
              { name: 'quick_refund', args: { label } },
            ],
          }
        : { text: 'done' },
    )
    const { id } = await runs.start(await agentWith('ask_human', 'quick_refund'))
    const ofCall = async () => (await tasksOf(id)).find(({ metadata }) => metadata.kind === 'outcome_unknown')
    await until(async () => (await ofCall()) !== undefined, 'people are asked about the call')
    await until(async () => (await runs.get(id)).pause_reason === 'human', 'the run waits for the answer')
    const task = (await ofCall()) ?? assert.fail()
    const say = async () => {
      const [run] = await inTransaction(pool, async (tx) => {
        await tx.query(`update tasks set status = 'completed', result = '"done"' where id = $1`, [task.id])
        return [await decideOutcome(tx, projectId, task, 'done')]
      })
      return run ?? null
    }
    if (isDecidedEarly) assert.equal(await say(), null)
    answer = 'Red.'
    await wakeWaiting(pool, id, 'human')
    runs.worker.onReady()
    if (isDecidedEarly) await until(async () => (await runs.get(id)).status === 'completed', 'the same run completes')
    else {
      await until(async () => (await runs.get(id)).pause_reason === 'outcome_unknown', 'the run pauses')
      const resumed = (await say()) ?? assert.fail('nothing continues')
      runs.worker.onReady()
      assert.equal((await runs.finished(resumed.id)).status, 'completed')
    }
    assert.equal((await tasksOf(id)).length, 1)
    assert.equal(begun.filter((one) => one === label).length, 1)
    hold.resolve()
  })
}
