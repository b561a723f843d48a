import { announce, button, el } from './dom.js'

/** Asks before something that hurts. Answers true only where the person said so. */
export function confirm({ title, text, action, isDanger = true }) {
  const { promise, resolve } = Promise.withResolvers()
  const yes = button(action, () => close(true), { class: isDanger ? 'danger' : 'primary' })
  const no = button('Cancel', () => close(false))
  const dialog = el(
    'dialog',
    { 'aria-labelledby': 'confirm-title', on: { cancel: () => close(false) } },
    el('h2', { id: 'confirm-title' }, title),
    el('p', {}, text),
    el('div', { class: 'actions' }, no, yes),
  )
  document.body.append(dialog)
  dialog.showModal()
  no.focus()
  return promise

  function close(answer) {
    dialog.close()
    dialog.remove()
    resolve(answer)
  }
}

/** A value that is shown once and never again, with a button that copies it. */
export function shownOnce({ title, value, hint }) {
  const id = 'shown-once'
  const input = el('input', { id, readonly: true, value, class: 'mono', on: { focus: () => input.select() } })
  const copy = button('Copy', () => copyText(input), { class: 'primary' })
  const element = el(
    'section',
    { class: 'note good', 'aria-label': title },
    el('label', { for: id }, title),
    el('div', { class: 'copy' }, input, copy),
    el('p', { class: 'hint' }, hint),
    button('Done', () => element.remove()),
  )
  return { element, focus: () => copy.focus() }
}

async function copyText(input) {
  try {
    await navigator.clipboard.writeText(input.value)
  } catch {
    // Away from localhost and https there is no clipboard object.
    input.select()
    if (!document.execCommand('copy')) return announce('It could not be copied. Select the text and copy it.')
  }
  announce('Copied.')
  const { activeElement } = document
  if (activeElement?.tagName !== 'BUTTON') return
  activeElement.textContent = 'Copied'
  setTimeout(() => {
    activeElement.textContent = 'Copy'
  }, 2_000)
}
