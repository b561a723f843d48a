import { el } from './dom.js'

let count = 0

/**
 * A form with a label for every field. `onSubmit` gets the values by name; while it works nothing can be sent twice, and
 * what it throws is shown above the button. Fields: {name, label, type, hint, options, ...attributes of the input}, or an
 * element made of them.
 */
export function form({ fields, submit, onSubmit, isInline = false, isQuiet = false, label, beside = [] }) {
  const problem = el('p', { class: 'note bad', role: 'alert', hidden: true })
  const send = el('button', { type: 'submit', class: isQuiet ? null : 'primary' }, submit)
  const element = el(
    'form',
    { class: isInline ? 'inline' : 'stacked', 'aria-label': label, on: { submit: onSend } },
    fields.map((each) => (each instanceof Node ? each : field(each))),
    problem,
    beside.length > 0 ? el('div', { class: 'buttons' }, send, beside) : send,
  )
  return element

  async function onSend(event) {
    event.preventDefault()
    if (send.disabled) return
    const values = Object.fromEntries(new FormData(element))
    send.disabled = true
    problem.hidden = true
    try {
      await onSubmit(values)
    } catch (error) {
      problem.textContent = error.message
      problem.hidden = false
    } finally {
      send.disabled = false
    }
  }
}

/** `options` are values, or pairs of a value and its words; `type` may be textarea. */
export function field({ name, label, hint, options, value, ...attributes }) {
  const id = `field-${++count}`
  const common = { id, name, 'aria-describedby': hint ? `${id}-hint` : null, ...attributes }
  const input = inputOf(common, options, value)
  if (attributes.type === 'hidden') return input
  if (attributes.type === 'checkbox') return el('label', { class: 'check' }, input, label)
  return el(
    'div',
    { class: 'field' },
    el('label', { for: id }, label),
    input,
    hint ? el('p', { id: `${id}-hint`, class: 'hint' }, hint) : null,
  )
}

function inputOf({ type, ...common }, options, value) {
  if (type === 'textarea') return el('textarea', common, value ?? '')
  if (!options) return el('input', { type, value, ...common })
  const pairs = options.map((option) => [option].flat())
  return el(
    'select',
    common,
    pairs.map(([key, words = key]) => el('option', { value: key, selected: key === value }, words)),
  )
}
