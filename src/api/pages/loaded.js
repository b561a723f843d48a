import { el, failure, focusOn, skeleton } from './dom.js'

/**
 * A part of the page that is read before it is shown. `show` makes its elements of what was read; `reload`, its second
 * argument, reads again.
 */
export function loaded(read, show, { lines = 4 } = {}) {
  const element = el('div', { class: 'panel' }, skeleton(lines))
  load()
  return element

  async function reload() {
    await load()
    // The element that had the focus is gone.
    focusOn(element, { preventScroll: true })
  }

  async function load() {
    let found
    try {
      found = await read()
    } catch (error) {
      element.replaceChildren(failure(error, reload))
      return
    }
    element.replaceChildren(...[show(found, reload)].flat().filter(Boolean))
  }
}
