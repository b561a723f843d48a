// The change, property by property. A person decides by what stands here, so nothing in a value may hide.
import { el } from './dom.js'

const SIGNS = { added: '+', removed: '−', changed: '~' }

/** `before` and `after` are whole properties, or null where there was or will be nothing. */
export function diffView(before, after) {
  const rows = differences(before ?? {}, after ?? {})
  const same = rows.filter(({ kind }) => kind === 'same')
  const shown = rows.filter(({ kind }) => kind !== 'same')
  return el(
    'div',
    { class: 'diff' },
    shown.length > 0
      ? el('ul', { 'aria-label': 'Changes' }, shown.map(row))
      : el('p', { class: 'dim' }, 'No property.'),
    same.length > 0 ? unchanged(same) : null,
  )
}

export const propertiesView = (properties) =>
  el(
    'dl',
    { class: 'facts properties' },
    Object.entries(properties).flatMap(([name, value]) => [
      el('dt', {}, visible(name)),
      el('dd', {}, el('pre', {}, textOf(value))),
    ]),
  )

function differences(before, after) {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])]
  return names.map((name) => {
    // Own properties only: a property may be called __proto__.
    const was = Object.hasOwn(before, name) ? before[name] : undefined
    const willBe = Object.hasOwn(after, name) ? after[name] : undefined
    return { name, was, willBe, kind: kindOf(was, willBe) }
  })
}

function kindOf(was, willBe) {
  if (was === undefined) return 'added'
  if (willBe === undefined) return 'removed'
  return JSON.stringify(was) === JSON.stringify(willBe) ? 'same' : 'changed'
}

function row({ name, was, willBe, kind }) {
  return el(
    'li',
    { class: kind },
    el('span', { class: 'sign', 'aria-hidden': 'true' }, SIGNS[kind]),
    el('span', { class: 'property' }, visible(name), el('span', { class: 'unseen' }, ` ${kind}:`)),
    el(
      'div',
      { class: 'values' },
      was === undefined ? null : el('del', {}, textOf(was)),
      willBe === undefined ? null : el('ins', {}, textOf(willBe)),
    ),
  )
}

const unchanged = (rows) =>
  el(
    'details',
    { class: 'same' },
    el('summary', {}, rows.length === 1 ? '1 property stays' : `${rows.length} properties stay`),
    propertiesView(Object.fromEntries(rows.map(({ name, was }) => [name, was]))),
  )

/** Strings in quotes, so that "1" is not taken for 1; longer texts as they are written. */
function textOf(value) {
  if (typeof value === 'string' && value.includes('\n')) return visible(value)
  return visible(JSON.stringify(value, null, 2))
}

/** Marks that turn the direction of text or take no room could show another value than the one that is meant. */
export const visible = (text) =>
  text.replace(
    /[\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]|[\u{e0000}-\u{e007f}]/gu,
    (mark) => `⟨U+${mark.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}⟩`,
  )
