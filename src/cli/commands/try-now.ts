import { runAnswer } from '../answers.ts'
import type { Execute } from '../command.ts'
import { exitCodes, misused } from '../exit-codes.ts'
import { findRun } from '../find-run.ts'
import { shortId } from '../short-id.ts'
import { jsonText } from '../visible-text.ts'
import { openWorkplace } from '../workplace.ts'

export const tryNowCommand: Execute = async (context, { args }) => {
  const { client, out, isJson } = context
  const workplace = await openWorkplace(context)
  const found = await findRun(context, workplace, args[0] ?? '', {
    fits: ({ kind, run }) => kind === 'run' && (run.waiting_for ?? '').startsWith('provider '),
    words: 'waits for a provider',
  })
  if (found.kind === 'flow run') throw misused('A flow run waits for no provider itself. Name the run of its leaf.')
  const { id } = found.run
  const run = await client.ask(workplace.path(`runs/${id}/try-now`), runAnswer, { method: 'POST' })
  out.print(isJson ? jsonText(run) : `${shortId(id)} tries its provider again now.`)
  return exitCodes.done
}
