// Random plans of agents, executed by two workers of which one or the other is declared dead again and again. Each plan
// ends as it would have without the deaths, and no effect happens twice.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createTestRuns, testTool } from '../../test/kit/run-worker.ts'
import { buryWorker } from '../../test/kit/runs.ts'
import { createScriptedModel } from '../../test/kit/scripted-model.ts'
import { inTransaction } from '../db/transaction.ts'
import type { ModelRequest } from '../kernel/model-call.ts'
import type { Run } from '../kernel/run.ts'
import { resumeRun } from './resume.ts'

type ToolName = 'look' | 'pay' | 'send' | 'spawn_agent'
type Plan = ToolName[][]

/** The number of uses of each key, and the tool that used it. */
const ledger = new Map<string, { tool: string; calls: number }>()
const turn = (): Promise<void> => new Promise(setImmediate)
const counted = (name: string, effect: 'readonly' | 'keyed' | 'unsafe') =>
  testTool(
    name,
    async (_args, { key }) => {
      const known = ledger.get(key)
      ledger.set(key, { tool: name, calls: (known?.calls ?? 0) + 1 })
      for (let turns = 0; turns < 20; turns++) await turn()
      return { ok: true }
    },
    { effect },
  )
const tools = [counted('look', 'readonly'), counted('pay', 'keyed'), counted('send', 'unsafe')]
const first = await createTestRuns({ tools, leaseMs: 300 })
const second = await createTestRuns({ tools, leaseMs: 300, database: first })
const { pool, projectId } = first

// The step follows from the history, not from a counter: a call that is repeated is answered as it was.
const stepOf = (request: ModelRequest): number =>
  request.prompt.filter((message) => message.role === 'assistant').length
first.models.set(
  'leaf',
  createScriptedModel(() => ({ text: 'leaf' })),
)
await first.createAgent({ name: 'leaf', model: { provider: 'test', name: 'leaf' } })

async function runPlan(plan: Plan): Promise<Run> {
  const name = `plan ${crypto.randomUUID()}`
  const model = createScriptedModel((request) => {
    const step = stepOf(request)
    const calls = plan[step]
    if (!calls) return { text: 'The end.' }
    return {
      text: `step ${step}`,
      calls: calls.map((tool, place) => ({
        id: `${step}.${place}`,
        name: tool,
        args: tool === 'spawn_agent' ? { agent: 'leaf', input: `${step}.${place}` } : { step, place },
      })),
    }
  })
  first.models.set(name, model)
  const agent = await first.createAgent({
    model: { provider: 'test', name },
    tools: ['look', 'pay', 'send', 'spawn_agent'],
  })
  let run = await first.run(agent)
  while (run.pause_reason === 'outcome_unknown') {
    const undecided = (await first.steps(run.id)).filter((step) => step.kind === 'tool' && step.outcome === 'unknown')
    let next = run
    for (const step of undecided) {
      const decision = { outcome: 'done', ...(step.kind === 'tool' ? { call_id: step.call_id } : {}) } as const
      next = await resumeRun(pool, projectId, run.id, decision)
    }
    first.worker.onReady()
    run = await first.finished(next.id)
  }
  assertHistory(plan, model.requests.at(-1))
  return run
}

/** Each call has exactly one result, and the results stand in the order of the plan. */
function assertHistory(plan: Plan, request: ModelRequest | undefined): void {
  const results = request?.prompt.flatMap((message) =>
    message.role === 'tool' ? message.content.flatMap((part) => ('toolCallId' in part ? [part.toolCallId] : [])) : [],
  )
  const expected = plan.flatMap((calls, step) => calls.map((_, place) => `${step}.${place}`))
  assert.deepEqual(results?.toSorted(), expected.toSorted())
}

async function declareSomebodyDead(): Promise<void> {
  const { rows } = await pool.query<{ id: string }>('select id from workers order by random() limit 1')
  for (const { id } of rows) await buryWorker(pool, id)
  // Innocent runs must not be given up because this test is crueller than any machine.
  await inTransaction(pool, (tx) =>
    tx.query('update agent_runs set crashes = 0 where crashes > 0 and completed_at is null'),
  )
  first.worker.onReady()
  second.worker.onReady()
}

const toolName = fc.constantFrom<ToolName>('look', 'pay', 'send', 'spawn_agent')
const plans = fc.array(fc.array(fc.array(toolName, { minLength: 1, maxLength: 3 }), { maxLength: 4 }), {
  minLength: 5,
  maxLength: 10,
})

test('every plan ends whole and no effect happens twice, whichever process dies', async () => {
  const isDone = { all: false }
  const chaos = (async () => {
    while (!isDone.all) {
      for (let turns = 0; turns < 400; turns++) await turn()
      await declareSomebodyDead()
    }
  })()
  try {
    await fc.assert(
      fc.asyncProperty(plans, async (batch) => {
        ledger.clear()
        const ended = await Promise.all(batch.map(runPlan))
        for (const [index, run] of ended.entries()) {
          assert.equal(run.status, 'completed', JSON.stringify(run))
          assert.equal(run.summary, 'The end.')
          assert.equal(run.step_count, (batch[index]?.length ?? 0) + 1)
        }
        for (const { tool, calls } of ledger.values()) if (tool === 'send') assert.equal(calls, 1)
        const keys = (tool: string) => [...ledger.values()].filter((entry) => entry.tool === tool).length
        const planned = (tool: string) => batch.flat(2).filter((name) => name === tool).length
        assert.equal(keys('pay'), planned('pay'), 'a keyed call has one key, however often it is made')
        assert.ok(keys('send') <= planned('send'))
      }),
      { numRuns: 6 },
    )
  } finally {
    isDone.all = true
    await chaos
  }
  const { rows } = await pool.query<{ run_id: string; gaps: number; finals: number }>(
    `select run_id, max(seq) - count(*) as gaps,
       count(*) filter (where kind in ('run.completed', 'run.failed', 'run.cancelled') and not data ? 'run_id') as finals
     from run_events group by run_id having max(seq) <> count(*)`,
  )
  assert.deepEqual(rows, [])
})
