// The cost of having every change versioned, audited and matched with the agents that react to it.
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
