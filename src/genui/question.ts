import type { LeafComponent } from '../kernel/genui.ts'
import { isResolved, type Task } from '../kernel/task.ts'
import { isOutcomeTask } from '../tasks/outcome-tasks.ts'
import { asMarkdown, asText, inWords } from './plain-text.ts'

/** A question to people, with the inputs for an answer while the question is open. Ids begin with the prefix. */
export function showQuestion(task: Task, prefix = ''): LeafComponent[] {
  const shown: LeafComponent[] = [{ type: 'markdown', id: `${prefix}question`, value: asMarkdown(textOf(task)) }]
  if (isResolved(task.status)) return [...shown, ...showResult(task, prefix)]
  const from = `${prefix}answer`
  const field: LeafComponent = isOutcomeTask(task)
    ? {
        type: 'select',
        id: from,
        label: 'Outcome of the call',
        options: [
          { value: 'done', label: 'It took effect' },
          { value: 'not_done', label: 'It did not take effect' },
        ],
        required: true,
      }
    : { type: 'input', id: from, label: 'Your answer', multiline: true, required: true }
  const action = { type: 'answer', task_id: task.id, from } as const
  return [...shown, field, { type: 'button', id: `${prefix}send`, label: 'Answer', action, emphasis: 'primary' }]
}

/** The title of a question is its first line. */
const textOf = ({ title, description }: Task): string => (description.trim() === '' ? title : description)

function showResult({ status, result }: Task, prefix: string): LeafComponent[] {
  const isAnswered = status === 'completed'
  const value = isAnswered ? 'This was answered.' : `This is ${asText(status)}; no answer is expected any more.`
  const state: LeafComponent = { type: 'text', id: `${prefix}state`, value, tone: isAnswered ? 'good' : 'neutral' }
  if (!isAnswered || result === null || result === undefined) return [state]
  return [state, { type: 'markdown', id: `${prefix}given`, value: asMarkdown(inWords(result)) }]
}
