// One project has 10,000 runs queued that each hang for a minute; another project starts one. How long that one takes,
// against the same on an instance where nothing else is under way. The same for flow runs whose functions hang. Both
// instances are real servers; each try is of a project that has never run anything, and tries on both take turns.

import { type Kind, tryNewcomers } from './fairness/newcomers.ts'
import { startBenchServer } from './kit/database.ts'
import { printVerdicts, type Verdict } from './kit/verdict.ts'

const CASES: readonly { kind: Kind; slots: number }[] = [
  { kind: 'run', slots: 50 },
  { kind: 'run', slots: 4 },
  { kind: 'flow run', slots: 50 },
  { kind: 'flow run', slots: 4 },
]

export async function benchFairness(): Promise<boolean> {
  await using server = await startBenchServer()
  const verdicts: Verdict[] = []
  for (const [index, { kind, slots }] of CASES.entries()) {
    const databases = {
      busy: await server.createDatabase(`busy_${index}`),
      idle: await server.createDatabase(`idle_${index}`),
    }
    verdicts.push(...(await tryNewcomers(databases, { kind, slots })))
  }
  printVerdicts(verdicts, { ours: 'busy', peer: 'idle' })
  return verdicts.every((verdict) => verdict.isKept)
}
