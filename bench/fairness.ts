// One project has queued 10,000 runs that each hang for a minute; another project starts one run. The time of that run
// is compared with the time on an idle instance. Flow runs whose functions hang are measured in the same way. Both
// instances are real servers and take turns; each try uses a project that has run nothing yet.

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
