import { post } from './api.js'
import { announce, button, el, failure, section } from './dom.js'
import { pagedList } from './list.js'
import { suggestionCard } from './suggestion-card.js'

const AT_ONCE = 200

/** Changes that agents put before people, decided one by one or several at once. */
export function suggestionsSection({ project, path, names, isMember }) {
  let cards = []
  const problem = el('div')
  const all = el('input', { type: 'checkbox', on: { change: () => selectAll(all.checked) } })
  const approve = button('Approve selected', approveSelected, { class: 'primary', disabled: true })
  const bar = el(
    'div',
    { class: 'selection', hidden: true },
    el('label', { class: 'check' }, all, 'Select all'),
    approve,
  )
  const list = pagedList({
    label: 'Suggestions, newest first',
    path,
    filter: () => ({ kind: 'suggestion', status: 'pending' }),
    empty: 'No change waits for a decision.',
    row: (task) => {
      const card = suggestionCard({ task, project, path, names, isMember, onChange: count })
      cards.push(card)
      return card.element
    },
  })
  new MutationObserver(() => {
    cards = cards.filter(({ element }) => element.isConnected)
    count()
  }).observe(list.element, { childList: true, subtree: true })
  return { element: section('Suggestions', null, isMember ? bar : null, problem, list.element), reload: list.reload }

  function count() {
    const selectable = cards.filter((card) => card.isSelectable())
    const selected = selectable.filter((card) => card.isSelected())
    bar.hidden = selectable.length < 2
    all.checked = selectable.length > 0 && selected.length === selectable.length
    all.indeterminate = selected.length > 0 && !all.checked
    const text = selected.length > 0 ? `Approve selected (${selected.length})` : 'Approve selected'
    if (approve.textContent !== text) approve.textContent = text
    approve.disabled = selected.length === 0
  }

  function selectAll(isSelected) {
    for (const card of cards) card.select(isSelected)
    count()
  }

  async function approveSelected() {
    const chosen = cards.filter((card) => card.isSelected()).slice(0, AT_ONCE)
    approve.disabled = true
    problem.replaceChildren()
    try {
      const { results } = await post(`${path}/approve`, { ids: chosen.map(({ id }) => id) })
      await Promise.all(results.map((result) => chosen.find(({ id }) => id === result.id)?.decided(result)))
      const approved = results.filter(({ ok }) => ok).length
      announce(`${approved} approved, ${results.length - approved} could not be.`)
    } catch (error) {
      problem.replaceChildren(failure(error, approveSelected))
    }
    count()
  }
}
