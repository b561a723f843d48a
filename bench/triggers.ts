// The cost of versioning and auditing every change, and of matching it with the agents that react.
import { startBenchServer } from './kit/database.ts'
import { printVerdicts, type Verdict } from './kit/verdict.ts'
import { benchLatency } from './triggers/latency.ts'
import { benchWrites } from './triggers/writes.ts'

export async function benchTriggers(): Promise<boolean> {
  await using server = await startBenchServer()
  const { createDatabase } = server
  const verdicts: Verdict[] = [
    ...(await benchLatency(await createDatabase('latency'))),
    ...(await benchWrites(await createDatabase('writes'))),
  ]
  printVerdicts(verdicts)
  return verdicts.every((verdict) => verdict.isKept)
}
