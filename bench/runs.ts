// The cost of durability for a run, against other libraries with the same steps and against PostgreSQL itself, all on
// one embedded server with fsync on. Rounds of the sides take turns, and the best of many rounds of each side counts,
// so that other work of the machine does not decide.
import { startBenchServer } from './kit/database.ts'
import { printVerdicts, type Verdict } from './kit/verdict.ts'
import { benchAppends, benchWholeRuns } from './runs/ceiling.ts'
import { benchFirstStep } from './runs/first-step.ts'
import { benchToolLoop } from './runs/tool-loop.ts'
import { benchWaiting } from './runs/waiting.ts'

export async function benchRuns(): Promise<boolean> {
  await using server = await startBenchServer()
  const { createDatabase } = server
  const verdicts: Verdict[] = [
    ...(await benchToolLoop({ ours: await createDatabase('loop'), langGraph: await createDatabase('langgraph') })),
    await benchAppends(await createDatabase('appends')),
    await benchWholeRuns(await createDatabase('runs')),
    ...(await benchFirstStep(await createDatabase('first_step'))),
    await benchWaiting(await createDatabase('waiting')),
  ]
  printVerdicts(verdicts)
  return verdicts.every((verdict) => verdict.isKept)
}
