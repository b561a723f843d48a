import { button, el, section } from './dom.js'
import { pagedList } from './list.js'
import { createNames } from './names.js'
import { questionCard } from './question-card.js'
import { suggestionsSection } from './suggestions-section.js'

/** What waits for people: questions of runs, changes that agents suggest, and work that nobody but people can do. */
export function inboxPanel({ me, project, isMember }) {
  const path = `/api/projects/${project.id}/tasks`
  const names = createNames({ me, project })
  const list = (label, kind, empty) =>
    pagedList({
      label,
      path,
      filter: () => ({ kind, status: 'pending' }),
      empty,
      // An assigned task is for an agent to do.
      row: (task) => (task.assigned_to === null ? questionCard({ task, path, names, isMember }) : null),
    })
  const questions = list('Questions', 'escalation', 'No run waits for an answer.')
  const work = list('Work for people', 'work', 'Nothing to do.')
  const suggestions = suggestionsSection({ project, path, names, isMember })
  const refresh = button('Refresh', () => {
    for (const each of [questions, suggestions, work]) each.reload()
  })
  return el(
    'div',
    { class: 'panel' },
    section('Questions', refresh, questions.element),
    suggestions.element,
    el('div', { class: 'if-any' }, section('Work for people', null, work.element)),
  )
}
