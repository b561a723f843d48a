// The cost of the organisation: the time from the arrival of a task to the model call beside many idle agents, against
// a bare row that is announced and claimed; and the model calls of a two-level organisation, against those of plain
// runs.
import { startBenchServer } from './kit/database.ts'
import { printVerdicts, type Verdict } from './kit/verdict.ts'
import { benchArrival } from './org/arrival.ts'
import { benchDelegation } from './org/delegation.ts'

export async function benchOrg(): Promise<boolean> {
  await using server = await startBenchServer()
  const verdicts: Verdict[] = [
    await benchArrival(await server.createDatabase('arrival')),
    await benchDelegation(await server.createDatabase('delegation')),
  ]
  printVerdicts(verdicts)
  return verdicts.every((verdict) => verdict.isKept)
}
