import { announce, button, el } from './dom.js'

/** Asks before something that hurts. Answers true only where the person said so; `refusal` names the way back. */
export function confirm({ title, text, action, refusal, isDanger = true }) {
  return choose({ title, content: el('p', {}, text), action, refusal, isDanger })
}

/** Asks for a sentence that may be left out. Answers it, or null where the person thought better of it. */
export async function askSentence({ title, label, action, maxlength }) {
  const input = el('textarea', { id: 'asked', rows: 3, maxlength })
  const content = el('div', { class: 'field' }, el('label', { for: 'asked' }, label), input)
  return (await choose({ title, content, action, isDanger: true, first: input })) ? input.value.trim() : null
}

function choose({ title, content, action, refusal = 'Cancel', isDanger, first }) {
  const { promise, resolve } = Promise.withResolvers()
  const yes = button(action, () => close(true), { class: isDanger ? 'danger' : 'primary' })
  const no = button(refusal, () => close(false))
  const dialog = el(
    'dialog',
    { 'aria-labelledby': 'confirm-title', on: { cancel: () => close(false) } },
    el('h2', { id: 'confirm-title' }, title),
    content,
    el('div', { class: 'actions' }, no, yes),
  )
  document.body.append(dialog)
  dialog.showModal()
  const wanted = first ?? no
  wanted.focus()
  // Whoever goes elsewhere leaves the question behind.
  const leave = () => close(false)
  window.addEventListener('hashchange', leave)
  return promise

  function close(answer) {
    window.removeEventListener('hashchange', leave)
    dialog.close()
    dialog.remove()
    resolve(answer)
  }
}

/** A value that is shown once and never again, with a button that copies it. */
export function shownOnce({ title, value, hint }) {
  const id = 'shown-once'
  const input = readonlyInput({ id, value })
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

/** A value to be used elsewhere, with a button that copies it. `label` says which one. */
export function copyable({ label, value }) {
  const input = readonlyInput({ value, 'aria-label': label })
  return el(
    'div',
    { class: 'copy' },
    input,
    button('Copy', () => copyText(input), { 'aria-label': `Copy ${label}` }),
  )
}

function readonlyInput(attributes) {
  const input = el('input', { readonly: true, class: 'mono', ...attributes, on: { focus: () => input.select() } })
  return input
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
