// Random flow trees through the real executor and PostgreSQL: two workers, failures, retries, cancels and crashes.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type ChaosCase, createChaos } from '../../../test/kit/flow-chaos.ts'
import { flowTrees } from '../../../test/kit/flow-tree.ts'
import { howMany, seeds } from '../../../test/kit/how-many.ts'
import type { BuiltInNode } from '../machine/built-in-patterns.ts'

const TREES_AT_ONCE = 5
const TREES_PER_SEED = 50
const chaos = await createChaos()

const call = fc.integer({ min: 1, max: 12 })
const kind = fc.constantFrom<'lost' | 'dead'>('lost', 'lost', 'lost', 'dead')
const cases: fc.Arbitrary<ChaosCase> = fc.record({
  root: flowTrees,
  crashes: fc.array(fc.record({ at: call, kind }), { maxLength: 2 }),
  cancelAt: fc.option(call, { freq: 2 }),
  workers: fc.option(fc.integer({ min: 1, max: 4 })),
  turns: fc.nat(3),
  startedBy: fc.constantFrom<0 | 1>(0, 1),
})

for (const seed of seeds(howMany(1, 100))) {
  test(`${TREES_PER_SEED} random flows end as their trees mean, and call no finished leaf again (MUSTER_TEST_SEED=${seed})`, async () => {
    const property = fc.asyncProperty(
      fc.array(cases, { minLength: TREES_AT_ONCE, maxLength: TREES_AT_ONCE }),
      async (batch) => assert.deepEqual(await Promise.all(batch.map(chaos.play)), Array(TREES_AT_ONCE).fill([])),
    )
    const limit = { interruptAfterTimeLimit: 90_000, markInterruptAsFailure: true }
    await fc.assert(property, { numRuns: TREES_PER_SEED / TREES_AT_ONCE, seed, ...limit })
  })
}

test('some random flows were cancelled, some were taken over, and some completed', (t) => {
  t.diagnostic(JSON.stringify(Object.fromEntries(chaos.happened)))
  for (const what of ['completed', 'cancelled', 'lost']) {
    assert.ok((chaos.happened.get(what) ?? 0) > 0, `nothing was ${what}`)
  }
})

test('no leaf of a random flow was called after the end', () => assert.deepEqual(chaos.calledAfterwards, []))

const step: BuiltInNode = { type: 'task', function: 'wrap 0' }
const usual: ChaosCase = {
  root: { type: 'sequential', steps: [step, step, step, step] },
  crashes: [{ at: 3, kind: 'lost' }],
  cancelAt: null,
  workers: null,
  turns: 0,
  startedBy: 0,
}

/** Plays a faulty server that forgets the record of one leaf with each takeover. */
async function playForgetting(given: ChaosCase): Promise<string[]> {
  const { pool } = chaos.flows[0]
  await pool.query(`
    create or replace function forget_leaf() returns trigger language plpgsql as $$ begin
      delete from flow_events where run_id = new.id and kind = 'task.completed' and data->>'task_id' = 'root/1';
      return new;
    end $$;
    create trigger forget_leaf before update of owner on flow_runs for each row when (old.owner is null)
      execute function forget_leaf()`)
  try {
    return await chaos.play(given)
  } finally {
    await pool.query('drop trigger forget_leaf on flow_runs')
  }
}

test('these tests find out a server that forgets a finished leaf', async () => {
  assert.deepEqual(await chaos.play(usual), [])
  const complaints = await playForgetting(usual)
  assert.ok(
    complaints.some((complaint) => /^1 root\/1 was called 2 times, 1 at most$/.test(complaint)),
    complaints.join('\n'),
  )
})
