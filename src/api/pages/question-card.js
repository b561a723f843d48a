import { get, patch } from './api.js'
import { confirm } from './dialogs.js'
import { visible } from './diff.js'
import { announce, button, el, focusOn, showInstant } from './dom.js'
import { form } from './form.js'
import { statusBadge } from './status.js'

/** A question that a run waits with, or work for people; the answer is the task's result. */
export function questionCard({ task, path, names, isMember }) {
  const isQuestion = task.kind === 'escalation'
  const isOutcome = isQuestion && task.metadata.kind === 'outcome_unknown'
  const element = el('li', { class: 'review', 'aria-label': visible(task.title) })
  draw(task)
  return element

  function draw(now) {
    const isOpen = now.status === 'pending'
    element.replaceChildren(
      el(
        'div',
        { class: 'title' },
        el('span', { class: 'name' }, visible(now.title)),
        isOpen ? null : statusBadge(now.status, now.status === 'completed' && isQuestion ? 'answered' : now.status),
        isOpen && ['high', 'urgent'].includes(now.priority) ? el('span', { class: 'badge' }, now.priority) : null,
      ),
      el(
        'p',
        { class: 'dim' },
        isQuestion ? 'asked by ' : 'wanted by ',
        names.author(now.created_by, now.run_id),
        ' · ',
        showInstant(now.created_at),
      ),
      ...(isOpen ? [el('p', { class: 'prose' }, visible(restOf(now)))] : []),
      ...(isOpen && isMember ? [answerForm()] : []),
    )
  }

  function answerForm() {
    return isOutcome ? outcomeForm() : textForm()
  }

  /** Nobody declines to say what became of a call: the run could not go on. */
  function outcomeForm() {
    return form({
      label: `Answer: ${task.title}`,
      submit: 'Answer',
      fields: [
        {
          name: 'result',
          label: 'What became of the call',
          options: [
            ['done', 'It took effect'],
            ['not_done', 'It did not take effect'],
          ],
        },
      ],
      onSubmit: ({ result }) => settle({ status: 'completed', result }),
    })
  }

  function textForm() {
    return form({
      label: `Answer: ${task.title}`,
      submit: isQuestion ? 'Answer' : 'Done',
      fields: [
        {
          name: 'result',
          label: isQuestion ? 'Your answer' : 'Result',
          type: 'textarea',
          rows: 2,
          required: isQuestion,
        },
      ],
      beside: [button(isQuestion ? 'Decline…' : 'Give up…', decline)],
      onSubmit: ({ result }) => settle({ status: 'completed', ...(result === '' ? {} : { result }) }),
    })
  }

  async function decline() {
    const text = task.run_id ? 'The run goes on and is told that people declined to answer.' : 'The task is cancelled.'
    const action = isQuestion ? 'Decline' : 'Give up'
    if (!(await confirm({ title: `${action}?`, text, action }))) return
    await settle({ status: 'cancelled' }).catch(async (error) => {
      announce(error.message)
      draw(await get(`${path}/${task.id}`).catch(() => task))
      element.append(el('p', { class: 'note bad', role: 'alert' }, error.message))
    })
  }

  async function settle(change) {
    draw(await patch(`${path}/${task.id}`, change))
    announce(change.status === 'completed' ? 'The answer is given.' : 'It is declined.')
    focusOn(element, { preventScroll: true })
  }
}

/** The title of a question is its first line. */
function restOf({ title, description }) {
  const text = description.trim()
  return text.startsWith(title) ? text.slice(title.length).trim() : text
}
