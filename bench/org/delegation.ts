// Model calls per second of tasks that seniors delegate and subordinates do (three calls for two tasks), against plain
// runs of one call, fifty at once, in turn on the same database.
import { startOrg } from '../../src/bin/org-services.ts'
import type { Pool } from '../../src/db/pool.ts'
import { silentLog } from '../../src/kernel/log.ts'
import { createOpening } from '../../src/org/opening.ts'
import { atLeast, type Verdict } from '../kit/verdict.ts'
import { type BenchWorker, startBenchWorker } from '../runs/bench-worker.ts'
import { createDecidingModel } from './deciding-model.ts'

const TEAMS = 25
const TASKS = 500
const PLAIN_RUNS = 1_500
const UNDER_WAY = 50
const ROUNDS = 5
const REQUIRED = 0.4

export async function benchDelegation(url: string): Promise<Verdict> {
  let calls = 0
  const model = createDecidingModel(() => void calls++, 'subordinate')
  const plain = createDecidingModel(() => void calls++, null)
  const worker = await startBenchWorker(url, (name) => (name === 'instant' ? plain : model), {
    opening: (parts) => createOpening({ ...parts, log: silentLog }),
  })
  const { pool, agent } = worker
  const org = startOrg({ role: 'all', pool, worker: worker.parts.worker, log: silentLog })
  const seniors = await makeTeams(pool, agent.project_id)
  const rate = async (work: () => Promise<void>): Promise<number> => {
    calls = 0
    const began = performance.now()
    await work()
    return calls / ((performance.now() - began) / 1_000)
  }
  try {
    const plainRates: number[] = []
    const orgRates: number[] = []
    for (let round = 0; round <= ROUNDS; round++) {
      const plainRate = await rate(() => runPlain(worker))
      const orgRate = await rate(() =>
        giveAndWait(pool, agent.project_id, seniors, () => org.services.poke(agent.project_id)),
      )
      // The first round warms both up.
      if (round === 0) continue
      plainRates.push(plainRate)
      orgRates.push(orgRate)
    }
    const [ours, peer] = [Math.max(...orgRates), Math.max(...plainRates)]
    return {
      what: 'model calls of a two-level organisation to plain runs',
      ours: `${Math.round(ours)} calls/s`,
      peer: `${Math.round(peer)} calls/s`,
      ...atLeast(ours / peer, REQUIRED),
    }
  } finally {
    await org.stop()
    await worker.stop()
  }
}

/** Every senior has one subordinate. */
async function makeTeams(pool: Pool, projectId: string): Promise<string[]> {
  const settings = { max_concurrent_agents: 10 * TEAMS, task_batch_size: TASKS }
  await pool.query('update projects set settings = $2, updated_at = muster.now() where id = $1', [
    projectId,
    JSON.stringify(settings),
  ])
  const capabilities = '{"canCreateObjects": true, "canUpdateObjects": true, "canDeleteObjects": true}'
  const chosen = JSON.stringify({ provider: 'bench', name: 'deciding', max_output_tokens: 4_096 })
  const { rows } = await pool.query<{ id: string }>(
    `insert into agents (id, project_id, name, model, capabilities)
     select gen_random_uuid(), $1, 'senior ' || n, $2, $3 from generate_series(1, ${TEAMS}) n returning id`,
    [projectId, chosen, capabilities],
  )
  await pool.query('drop index agents_name')
  await pool.query(
    `insert into agents (id, project_id, name, model, capabilities, senior_id)
     select gen_random_uuid(), $1, 'subordinate', $2, $3, s.id from unnest($4::uuid[]) as s (id)`,
    [projectId, chosen, capabilities, rows.map((row) => row.id)],
  )
  return rows.map((row) => row.id)
}

async function runPlain(worker: BenchWorker): Promise<void> {
  let left = PLAIN_RUNS
  const lane = async (): Promise<void> => {
    while (left-- > 0) await worker.finished(await worker.start())
  }
  await Promise.all(Array.from({ length: UNDER_WAY }, lane))
}

async function giveAndWait(pool: Pool, projectId: string, seniors: readonly string[], poke: () => void): Promise<void> {
  await pool.query(
    `with given as (
       insert into tasks (id, project_id, kind, title, assigned_to, created_by)
       select gen_random_uuid(), $1, 'work', 'Task ' || n, ($2::uuid[])[1 + n % ${TEAMS}], '{"type": "user", "id": null}'
       from generate_series(1, ${TASKS}) n returning assigned_to
     )
     insert into task_queues as q (agent_id, project_id, due_at) select distinct assigned_to, $1::uuid, muster.now() from given
     on conflict (agent_id) do update set due_at = excluded.due_at`,
    [projectId, seniors],
  )
  poke()
  for (;;) {
    const { rows } = await pool.query<{ open: boolean }>(
      // The index of open tasks serves this query, so ended tasks are not read.
      `select exists (select from tasks where kind = 'work' and status in ('pending', 'in-progress', 'blocked')
         and completed_at is null and project_id = $1) as open`,
      [projectId],
    )
    if (!rows[0]?.open) return
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}
