import { hasEnded } from '../../kernel/run.ts'
import { flowRunAnswer, runAnswer } from '../answers.ts'
import type { Execute } from '../command.ts'
import { exitCodes } from '../exit-codes.ts'
import { findRun } from '../find-run.ts'
import { shortId } from '../short-id.ts'
import { jsonText } from '../visible-text.ts'
import { hasFlowEnded } from '../watch-flow-run.ts'
import { openWorkplace } from '../workplace.ts'

export const cancelCommand: Execute = async (context, { args }) => {
  const { client, out, isJson } = context
  const workplace = await openWorkplace(context)
  const found = await findRun(context, workplace, args[0] ?? '', {
    fits: ({ kind, run }) => (kind === 'run' ? !hasEnded(run) : !hasFlowEnded(run)),
    words: 'is under way',
  })
  const { id } = found.run
  const asked = { method: 'POST' }
  const run =
    found.kind === 'run'
      ? await client.ask(workplace.path(`runs/${id}/cancel`), runAnswer, asked)
      : await client.ask(workplace.path(`flow-runs/${id}/cancel`), flowRunAnswer, asked)
  if (isJson) out.print(jsonText(run))
  else if (run.status === 'running') out.print(`Cancelling ${shortId(id)}: no new calls; calls in progress may finish.`)
  else out.print(`${shortId(id)} is ${run.status}.`)
  return exitCodes.done
}
