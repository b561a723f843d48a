import { taskAnswer } from '../answers.ts'
import type { Execute } from '../command.ts'
import { exitCodes } from '../exit-codes.ts'
import { findTask } from '../open-tasks.ts'
import { readText } from '../read-input.ts'
import { styled } from '../screen.ts'
import { shortId } from '../short-id.ts'
import { jsonText } from '../visible-text.ts'
import { openWorkplace } from '../workplace.ts'

export const answerCommand: Execute = async (context, { args }) => {
  const { client, out, notes, isJson } = context
  const [reference = '', text = ''] = args
  const workplace = await openWorkplace(context)
  const { id } = await findTask(context, workplace, reference, ['escalation', 'work'])
  const result = text === '-' ? await readText(context, text) : text
  const body = { status: 'completed', result }
  const task = await client.ask(workplace.path(`tasks/${id}`), taskAnswer, { method: 'PATCH', body })
  out.print(isJson ? jsonText(task) : `Answered: ${task.title}`)
  if (!isJson && task.run_id !== null) {
    notes.print('The run goes on: ', styled('cyan', `muster follow ${shortId(task.run_id)}`))
  }
  return exitCodes.done
}
