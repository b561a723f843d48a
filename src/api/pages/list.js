import { get } from './api.js'
import { button, el, failure, focusOn, skeleton } from './dom.js'

/**
 * A list that is read a page at a time. `row` makes an <li> of an item, or null of one that does not belong here; `filter`
 * gives what else to ask for. A refresh that fails leaves what was there and says that it is old. `focus` is for when the
 * row that had it is gone.
 */
export function pagedList({ label, path, row, empty, filter = () => ({}), limit = 50 }) {
  let asked = 0
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
    const query = new URLSearchParams({ limit: String(limit), ...filter(), ...(cursor ? { cursor } : {}) })
    const mine = ++asked
    try {
      const { items, next_cursor } = await get(`${path}?${query}`)
      // Whoever asked for something else meanwhile must not be shown this.
      if (mine !== asked) return
      const made = items.map(row).filter((each) => each !== null)
      if (cursor) rows.append(...made)
      else rows.replaceChildren(...made)
      below.replaceChildren(...whatFollows(next_cursor))
    } catch (error) {
      if (mine !== asked) return
      const shown = rows.hasChildNodes()
        ? Object.assign(error, { message: `${error.message} What is shown is old.` })
        : error
      below.replaceChildren(failure(shown, () => (cursor ? show(cursor) : reload())))
    }
  }

  function whatFollows(next) {
    if (next) return [button('Show more', (event) => more(event.currentTarget, next))]
    return rows.hasChildNodes() ? [] : [el('p', { class: 'empty' }, empty)]
  }

  async function more(pressed, next) {
    pressed.disabled = true
    const before = rows.childElementCount
    await show(next)
    rows.children[before]?.querySelector('button, a, select')?.focus()
  }
}
