// Measures the cost of making every leaf of a flow durable, against LangGraph with the same flows and against
// PostgreSQL itself, all on one embedded server with fsync on. Then it measures agents as leaves, and the reading of a
// source.
import { benchAgentLeaves } from './flows/agent-leaves.ts'
import { benchFanOut } from './flows/fan-out.ts'
import { benchMapReduce } from './flows/map-reduce.ts'
import { benchSequences } from './flows/sequences.ts'
import { startBenchServer } from './kit/database.ts'
import { printVerdicts, type Verdict } from './kit/verdict.ts'

export async function benchFlows(): Promise<boolean> {
  await using server = await startBenchServer()
  const { createDatabase } = server
  const langGraph = await createDatabase('langgraph')
  const verdicts: Verdict[] = [
    ...(await benchSequences({ ours: await createDatabase('sequences'), langGraph })),
    await benchFanOut({ ours: await createDatabase('fan_out'), langGraph }),
  ]
  printVerdicts(verdicts)
  console.log(await benchAgentLeaves(await createDatabase('agents')))
  console.log(await benchMapReduce(await createDatabase('map_reduce')))
  return verdicts.every((verdict) => verdict.isKept)
}
