import type { Log } from '../kernel/log.ts'
import type { ObjectWriter } from '../objects/write-objects.ts'
import type { WriteCallTool } from '../runs/owned-run.ts'
import { createWriteTools } from '../tasks/write-tools.ts'
import { callSeniorTool, isSeniorTool } from './senior-tools.ts'

/** Carries out every tool that changes Muster's own data. */
export function createWrite({ writer, log }: { writer: ObjectWriter; log: Log }): WriteCallTool {
  const write = createWriteTools({ writer })
  return (tx, call) => (isSeniorTool(call.name) ? callSeniorTool(tx, log, call) : write(tx, call))
}
