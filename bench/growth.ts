// The cost of an old instance, against a new one: a database with a million ended runs and all rows that belong to
// them, against an empty database on the same server. Then the cost of a claim while a hundred thousand runs wait,
// against a hundred. Rounds of the sides take turns, so that other work of the machine slows both alike.
// `BENCH_ENDED_RUNS=<number>` makes another number of ended runs, for a quick look; the promise is about a million.
import { createPool } from '../src/db/pool.ts'
import { silentLog } from '../src/kernel/log.ts'
import { fillLargeTables } from '../test/kit/large-tables.ts'
import { benchClaims } from './growth/claims.ts'
import { benchGrownRuns } from './growth/grown-runs.ts'
import { benchIdle } from './growth/idle.ts'
import { startBenchServer } from './kit/database.ts'
import { printVerdicts, type Verdict } from './kit/verdict.ts'

const ENDED_RUNS = Number(process.env.BENCH_ENDED_RUNS ?? 1_000_000)

export async function benchGrowth(): Promise<boolean> {
  await using server = await startBenchServer()
  const { createDatabase } = server
  const databases = { empty: await createDatabase('empty'), grown: await createDatabase('grown') }
  await grow(databases.grown)
  const verdicts: Verdict[] = [
    ...(await benchIdle(databases)),
    ...(await benchGrownRuns(databases)),
    await benchClaims({ few: await createDatabase('few_queued'), many: await createDatabase('many_queued') }),
  ]
  printVerdicts(verdicts, { ours: 'grown', peer: 'empty' })
  return verdicts.every((verdict) => verdict.isKept)
}

async function grow(url: string): Promise<void> {
  const pool = createPool({ url, max: 1, log: silentLog, statementTimeoutMs: 3_600_000 })
  const began = performance.now()
  await fillLargeTables(url, ENDED_RUNS)
  await pool.query('checkpoint')
  await pool.end()
  const seconds = ((performance.now() - began) / 1_000).toFixed(0)
  console.log(`${ENDED_RUNS.toLocaleString('en')} ended runs were made in ${seconds} s.\n`)
}
