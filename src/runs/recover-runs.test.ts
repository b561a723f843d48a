import assert from 'node:assert/strict'
import { createTestFlows } from '../../test/kit/flows.ts'
import { inTier } from '../../test/kit/tiers.ts'
import { type Log, silentLog } from '../kernel/log.ts'

const errors: string[] = []
const log: Log = { ...silentLog, error: (_, sentence) => void errors.push(sentence) }
// This is longer than the second between two sweeps.
const { pool, worker, flowWorker } = await createTestFlows({ log, leaseMs: 1_000, unwellAfterMs: 1_500 })

const until = async (condition: () => boolean): Promise<void> => {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 10))
}

const cases = [
  {
    name: 'runs that may go on cannot be looked up',
    breaks: 'alter table tasks rename to tasks_away',
    mends: 'alter table tasks_away rename to tasks',
    isWell: () => worker.isRecovering(),
    says: 'runs cannot be recovered',
  },
  {
    name: 'runs without a living owner cannot be found',
    breaks:
      "alter table agent_runs rename column reserved to reserved_away; insert into agent_runs (id, project_id, agent_id, trigger, input, owner, ready_at) select gen_random_uuid(), id, id, '{}', '{}', gen_random_uuid(), null from projects limit 1",
    mends: 'alter table agent_runs rename column reserved_away to reserved',
    isWell: () => worker.isRecovering(),
    says: 'runs cannot be recovered',
  },
  {
    name: 'dead processes cannot be found',
    breaks: 'alter table workers rename column beat_ms to beat_away',
    mends: 'alter table workers rename column beat_away to beat_ms',
    isWell: () => worker.isRecovering(),
    says: 'dead processes cannot be found',
  },
  {
    name: 'flow runs that are due cannot be woken',
    breaks: 'alter table flow_handouts rename to handouts_away',
    mends: 'alter table handouts_away rename to flow_handouts',
    isWell: () => flowWorker.isRecovering(),
    says: 'flow runs cannot be recovered',
  },
]

for (const { name, breaks, mends, isWell, says } of cases) {
  inTier(name === cases[0]?.name)(`${name}: the process is not ready, logs one error, and recovers`, async () => {
    await until(isWell)
    errors.length = 0
    await pool.query(breaks)
    await until(() => errors.length > 0)
    await until(() => !isWell())
    // Sweeps that succeed in part must not make the process look well again.
    for (let looks = 0; looks < 200; looks++) {
      assert.equal(isWell(), false)
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
    assert.deepEqual(errors, [`${says}; the work is retried`])
    await pool.query(mends)
    await until(isWell)
  })
}
