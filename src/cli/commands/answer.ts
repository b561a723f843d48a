import { taskAnswer } from '../answers.ts'
import type { Execute } from '../command.ts'
import { exitCodes, misused } from '../exit-codes.ts'
import { findTask, isAboutBeginningAnew } from '../open-tasks.ts'
import { readText } from '../read-input.ts'
import { styled } from '../screen.ts'
import { shortId } from '../short-id.ts'
import { jsonText } from '../visible-text.ts'
import { openWorkplace } from '../workplace.ts'

export const answerCommand: Execute = async (context, { args }) => {
  const { client, out, notes, isJson } = context
  const [reference = '', text = ''] = args
  const workplace = await openWorkplace(context)
  const task = await findTask(context, workplace, reference, ['escalation', 'work'])
  const result = text === '-' ? await readText(context, text) : text
  if (isAboutBeginningAnew(task) && result !== 'again' && result !== 'stop') {
    throw misused(`Answer with \`again\` or \`stop\`, not "${result}".`)
  }
  const body = { status: 'completed', result }
  const answered = await client.ask(workplace.path(`tasks/${task.id}`), taskAnswer, { method: 'PATCH', body })
  out.print(isJson ? jsonText(answered) : `Answered: ${answered.title}`)
  if (!isJson && answered.run_id !== null) {
    notes.print('The run continues: ', styled('cyan', workplace.command(`muster follow ${shortId(answered.run_id)}`)))
  }
  return exitCodes.done
}
