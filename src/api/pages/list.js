import { get } from './api.js'
import { button, el, failure, focusOn, skeleton } from './dom.js'

/**
 * A list that is read a page at a time. `row` makes an <li> of an item. A refresh that fails leaves what was there and
 * says that it is old. `focus` is for when the row that had it is gone.
 */
export function pagedList({ label, path, row, empty }) {
  const rows = el('ul', { class: 'rows', 'aria-label': label })
  const below = el('div')
  const element = el('div', { class: 'list' }, rows, below)
  reload()
  return { element, reload, focus: () => focusOn(element, { preventScroll: true }) }

  async function reload() {
    element.setAttribute('aria-busy', 'true')
    if (!rows.hasChildNodes()) below.replaceChildren(skeleton())
    await show(null)
    element.removeAttribute('aria-busy')
  }

  async function show(cursor) {
    const query = new URLSearchParams({ limit: '50', ...(cursor ? { cursor } : {}) })
    try {
      const { items, next_cursor } = await get(`${path}?${query}`)
      const made = items.map(row)
      if (cursor) rows.append(...made)
      else rows.replaceChildren(...made)
      below.replaceChildren(...whatFollows(next_cursor))
    } catch (error) {
      const shown = rows.hasChildNodes()
        ? Object.assign(error, { message: `${error.message} What is shown is old.` })
        : error
      below.replaceChildren(failure(shown, () => (cursor ? show(cursor) : reload())))
    }
  }

  function whatFollows(next) {
    if (!rows.hasChildNodes()) return [el('p', { class: 'empty' }, empty)]
    return next ? [button('Show more', (event) => more(event.currentTarget, next))] : []
  }

  async function more(pressed, next) {
    pressed.disabled = true
    const before = rows.childElementCount
    await show(next)
    rows.children[before]?.querySelector('button, a, select')?.focus()
  }
}
