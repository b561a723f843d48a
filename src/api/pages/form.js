import { el } from './dom.js'

let count = 0

/**
 * A form with a label for every field. `onSubmit` gets the values by name; while it works nothing can be sent twice, and
 * what it throws is shown above the button. Fields: {name, label, type, hint, options, ...attributes of the input}.
 */
export function form({ fields, submit, onSubmit, isInline = false, isQuiet = false, label }) {
  const problem = el('p', { class: 'note bad', role: 'alert', hidden: true })
  const send = el('button', { type: 'submit', class: isQuiet ? null : 'primary' }, submit)
  const element = el(
    'form',
    { class: isInline ? 'inline' : 'stacked', 'aria-label': label, on: { submit: onSend } },
    fields.map(field),
    problem,
    send,
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

function field({ name, label, hint, options, ...attributes }) {
  const id = `field-${++count}`
  const common = { id, name, 'aria-describedby': hint ? `${id}-hint` : null, ...attributes }
  const input = options
    ? el(
        'select',
        common,
        options.map((option) => el('option', { value: option }, option)),
      )
    : el('input', common)
  if (attributes.type === 'hidden') return input
  return el(
    'div',
    { class: 'field' },
    el('label', { for: id }, label),
    input,
    hint ? el('p', { id: `${id}-hint`, class: 'hint' }, hint) : null,
  )
}
