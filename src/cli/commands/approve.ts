import { approvalAnswer, type TaskAnswer } from '../answers.ts'
import type { Execute } from '../command.ts'
import { exitCodes } from '../exit-codes.ts'
import { findTask, nameOfTask } from '../open-tasks.ts'
import { styled } from '../screen.ts'
import { jsonText } from '../visible-text.ts'
import { openWorkplace } from '../workplace.ts'

/** Every reference is found before anything is approved: a wrong one leaves all suggestions as they are. */
export const approveCommand: Execute = async (context, { args }) => {
  const { client, out, notes, isJson } = context
  const workplace = await openWorkplace(context)
  const tasks = new Map<string, TaskAnswer>()
  for (const reference of args) {
    const task = await findTask(context, workplace, reference, ['suggestion'])
    tasks.set(task.id, task)
  }
  const asked = { method: 'POST', body: { ids: [...tasks.keys()] } }
  const answer = await client.ask(workplace.path('tasks/approve'), approvalAnswer, asked)
  if (isJson) out.print(jsonText(answer))
  for (const { id, ok, error } of isJson ? [] : answer.results) {
    const task = tasks.get(id)
    const title = task ? nameOfTask(task) : id
    if (ok) out.print(styled('green', 'Approved: '), title)
    else notes.print(styled('red', 'Not approved: '), `${title}. ${error?.message ?? ''}`)
  }
  return answer.results.every(({ ok }) => ok) ? exitCodes.done : exitCodes.refused
}
