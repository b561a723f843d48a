// `npm run bench -- <name>`: measures one promise of the design against a plain peer in the same run, on this machine,
// and exits 1 when the promise is not kept. Ratios count; absolute numbers depend on the machine.
import { benchCompare } from './compare.ts'
import { benchFairness } from './fairness.ts'
import { benchFlows } from './flows.ts'
import { benchGrowth } from './growth.ts'
import { benchHttp } from './http.ts'
import { benchIdleAgents } from './idle-agents.ts'
import { benchLongRun } from './long-run.ts'
import { benchOrg } from './org.ts'
import { benchOutage } from './outage.ts'
import { benchRuns } from './runs.ts'
import { benchStall } from './stall.ts'
import { benchSupervisor } from './supervisor.ts'
import { benchTriggers } from './triggers.ts'

/** Each bench prints its measurements and returns true if its promise holds. */
const benches: Readonly<Record<string, (args: readonly string[]) => Promise<boolean>>> = {
  http: benchHttp,
  runs: benchRuns,
  'long-run': benchLongRun,
  triggers: benchTriggers,
  flows: benchFlows,
  stall: benchStall,
  growth: benchGrowth,
  fairness: benchFairness,
  org: benchOrg,
  outage: benchOutage,
  'idle-agents': benchIdleAgents,
  supervisor: benchSupervisor,
  compare: benchCompare,
}

const [name = '', ...args] = process.argv.slice(2)
const bench = Object.hasOwn(benches, name) ? benches[name] : undefined
if (bench) {
  process.exitCode = (await bench(args)) ? 0 : 1
} else {
  if (name !== '') console.error(`There is no bench called ${name}.`)
  console.error(`Run one of these: ${Object.keys(benches).join(', ')}. For example: npm run bench -- http`)
  process.exitCode = 1
}
