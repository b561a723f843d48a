// Every element these pages show is made here. Text becomes text nodes, so nothing that a person or a model wrote is
// ever read as HTML.

/** `on` takes listeners by event; a true attribute stands alone, a false or missing one is left out. */
export function el(tag, { on = {}, ...attributes } = {}, ...children) {
  const element = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === undefined || value === null) continue
    element.setAttribute(name, value === true ? '' : String(value))
  }
  for (const [event, listener] of Object.entries(on)) element.addEventListener(event, listener)
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false))
  return element
}

export const button = (label, onClick, attributes = {}) =>
  el('button', { type: 'button', ...attributes, on: { click: onClick } }, label)

/** Words that are the same stay untouched: no selection is lost, and nothing is drawn anew. */
export function setText(element, words) {
  if (element.textContent !== words) element.textContent = words
}

/** Said to whoever listens to the page instead of looking at it. */
export function announce(sentence) {
  document.getElementById('announcer').textContent = sentence
}

/** For what takes the focus when its part of the page appears, and is no control. */
export function focusOn(element, options = {}) {
  element.setAttribute('tabindex', '-1')
  element.focus(options)
}

export const skeleton = (lines = 3) =>
  el(
    'div',
    { class: 'skeleton', 'aria-hidden': 'true' },
    Array.from({ length: lines }, () => el('span')),
  )

/** What failed, and a way to try again. */
export const failure = (error, retry) =>
  el('div', { class: 'note bad', role: 'alert' }, el('p', {}, error.message), button('Try again', retry))

/** A part of a panel under its own heading, with what can be done to all of it at the right. */
export const section = (title, actions, ...children) =>
  el(
    'section',
    { class: 'section', 'aria-label': title },
    el('div', { class: 'title' }, el('h2', {}, title), el('div', { class: 'buttons' }, actions)),
    children,
  )

/** The end tells ids apart: they begin with the time. */
export const shortId = (id) => el('code', { title: id }, id.length > 12 ? `…${id.slice(-8)}` : id)

const instant = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' })
const day = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' })
const clock = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium' })

const time = (format) => (iso) => el('time', { datetime: iso, title: iso }, format.format(new Date(iso)))
export const showInstant = time(instant)
export const showDay = time(day)
export const clockTime = (date) => clock.format(date)
