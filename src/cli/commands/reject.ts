import { taskAnswer } from '../answers.ts'
import type { Execute } from '../command.ts'
import { exitCodes } from '../exit-codes.ts'
import { findTask, nameOfTask } from '../open-tasks.ts'
import { textOption } from '../read-input.ts'
import { jsonText } from '../visible-text.ts'
import { openWorkplace } from '../workplace.ts'

export const rejectCommand: Execute = async (context, given) => {
  const { client, out, isJson } = context
  const workplace = await openWorkplace(context)
  const { id } = await findTask(context, workplace, given.args[0] ?? '', ['suggestion'])
  const reason = textOption(given, 'reason')
  const body = reason === null ? {} : { reason }
  const task = await client.ask(workplace.path(`tasks/${id}/reject`), taskAnswer, { method: 'POST', body })
  out.print(isJson ? jsonText(task) : `Rejected: ${nameOfTask(task)}`)
  return exitCodes.done
}
