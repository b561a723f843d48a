import type { Execute } from '../command.ts'
import { findNewest, findRun } from '../find-run.ts'
import { styled } from '../screen.ts'
import { shortId } from '../short-id.ts'
import { watchFlowRun } from '../watch-flow-run.ts'
import { watchRun } from '../watch-run.ts'
import { openWorkplace } from '../workplace.ts'

export const followCommand: Execute = async (context, { args, options }) => {
  const workplace = await openWorkplace(context)
  const found =
    args[0] === undefined ? await findNewest(context, workplace) : await findRun(context, workplace, args[0])
  if (found.kind === 'flow run') {
    if (!context.isJson) context.notes.print(styled('dim', `Flow run ${shortId(found.run.id)}`))
    return watchFlowRun(context, workplace, found.run, { asEvents: true })
  }
  const name = await workplace.agentName(found.run.agent_id)
  if (!context.isJson) context.notes.print(styled('dim', `${name} · ${shortId(found.run.id)}`))
  return watchRun(context, workplace, found.run, { asEvents: true, staysThroughWaits: options.wait === true })
}
