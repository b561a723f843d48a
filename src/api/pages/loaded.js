import { el, failure, skeleton } from './dom.js'

/**
 * A part of the page that is read before it is shown. `show` makes its elements of what was read; `reload`, its second
 * argument, reads again.
 */
export function loaded(read, show, { lines = 4 } = {}) {
  const element = el('div', { class: 'panel' }, skeleton(lines))
  load()
  return element

  async function load() {
    let found
    try {
      found = await read()
    } catch (error) {
      element.replaceChildren(failure(error, load))
      return
    }
    element.replaceChildren(...[show(found, load)].flat().filter(Boolean))
  }
}
