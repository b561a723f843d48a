// (d) The time of the statement that claims the next run for a free slot while 100,000 runs wait, against 100. The
// number of waiting runs is the same at every claim: for each run that is claimed and ended, another is queued. Half of
// the runs belong to one project.
import { createPool, type Pool } from '../../src/db/pool.ts'
import { claimRuns } from '../../src/journal/claim.ts'
import { newId } from '../../src/kernel/id.ts'
import { silentLog } from '../../src/kernel/log.ts'
import { NO_PROJECT } from '../../src/queue/queue-table.ts'
import { atMostLatency, type Verdict } from '../kit/verdict.ts'

const FEW = 100
const MANY = 100_000
const PROJECTS = 20
const CLAIMS = 1_000
const WARM_UP = 200
const ROUNDS = 5
const REQUIRED = 1.5
const KEPT = 10

export async function benchClaims(databases: { few: string; many: string }): Promise<Verdict> {
  const few = await createQueue(databases.few, FEW)
  const many = await createQueue(databases.many, MANY)
  const rounds: { ours: number[]; bare: number[] }[] = []
  for (let round = 0; round <= ROUNDS; round++) {
    const times: { ours: number[]; bare: number[] } = { ours: [], bare: [] }
    for (let claim = 0; claim < (round === 0 ? WARM_UP : CLAIMS); claim++) {
      times.ours.push(await many.claim())
      times.bare.push(await few.claim())
    }
    // The first round warms up.
    if (round > 0) rounds.push(times)
  }
  await many.end()
  await few.end()
  const what = `claim with ${MANY.toLocaleString('en')} queued runs to ${FEW}, p99`
  return atMostLatency(what, rounds, 0.99, REQUIRED)
}

interface Queue {
  /** Claims one run, ends it and queues another. Returns the milliseconds of the claim. */
  claim(): Promise<number>
  end(): Promise<void>
}

async function createQueue(url: string, runs: number): Promise<Queue> {
  const pool = createPool({ url, max: 1, log: silentLog, statementTimeoutMs: 3_600_000 })
  const projects = Array.from({ length: PROJECTS }, () => newId())
  const owner = newId()
  await pool.query(`insert into projects (id, name) select id, 'A project' from unnest($1::uuid[]) as p (id)`, [
    projects,
  ])
  await pool.query(
    `insert into workers (id, lease_until, slots, lock_key, beat_ms, locked_on)
     values ($1, now() + interval '1 day', 50, 1, 1000, now())`,
    [owner],
  )
  await enqueue(pool, projects, runs)
  await pool.query('vacuum analyze')
  let cursor = NO_PROJECT
  return {
    claim: async () => {
      const ask = { owner, free: 1, kept: KEPT, cursor, projectIds: [], counts: [], leftOut: [] }
      const began = performance.now()
      const dealt = await claimRuns(pool, ask)
      const tookMs = performance.now() - began
      const [run] = dealt.claimed
      if (!run || dealt.claimed.length > 1) throw new Error(`${dealt.claimed.length} runs were claimed`)
      cursor = dealt.cursor
      await pool.query(`update agent_runs set owner = null, status = 'completed', completed_at = now() where id = $1`, [
        run.id,
      ])
      await enqueue(pool, [run.project_id], 1)
      return tookMs
    },
    end: () => pool.end(),
  }
}

/** Every second run belongs to the first project. */
async function enqueue(pool: Pool, projects: readonly string[], count: number): Promise<void> {
  await pool.query(
    `insert into agent_runs (id, project_id, agent_id, trigger, input, ready_at)
     select gen_random_uuid(), ($1::uuid[])[1 + case when i % 2 = 0 then 0 else (i / 2) % cardinality($1::uuid[]) end], $2,
       '{"type":"manual"}', '"hello"', now()
     from generate_series(0, $3 - 1) i`,
    [projects, newId(), count],
  )
}
