// The difference between two sets of properties. A person decides by it, so nothing in a value may hide.
import { diffWordsWithSpace } from 'diff'

type Properties = Readonly<Record<string, unknown>>

export interface PropertyChange {
  name: string
  kind: 'added' | 'removed' | 'changed' | 'same'
  /** As text, null where there is no such property. */
  was: string | null
  willBe: string | null
}

/** Null stands for an object that does not exist. */
export function propertyChanges(before: Properties | null, after: Properties | null): PropertyChange[] {
  const [from, to] = [before ?? {}, after ?? {}]
  const names = [...new Set([...Object.keys(from), ...Object.keys(to)])]
  return names.map((name) => {
    // Own properties only: a property may be called __proto__.
    const was = Object.hasOwn(from, name) ? textOf(from[name]) : null
    const willBe = Object.hasOwn(to, name) ? textOf(to[name]) : null
    const kind = was === null ? 'added' : willBe === null ? 'removed' : was === willBe ? 'same' : 'changed'
    return { name: showMarks(name), kind, was, willBe }
  })
}

export interface Piece {
  text: string
  kind: 'added' | 'removed' | 'same'
}

const SHORT = 40
const LONG = 20_000

/** The words that changed. Null where the whole values are easier to read, or too long to compare. */
export function changedPieces(was: string, willBe: string): Piece[] | null {
  if (Math.max(was.length, willBe.length) < SHORT || was.length + willBe.length > LONG) return null
  const pieces = diffWordsWithSpace(was, willBe).map(({ value, added, removed }): Piece => {
    return { text: value, kind: added ? 'added' : removed ? 'removed' : 'same' }
  })
  const kept = pieces.reduce((sum, { kind, text }) => sum + (kind === 'same' ? text.length : 0), 0)
  return kept * 3 < Math.max(was.length, willBe.length) ? null : pieces
}

/** Strings stand in quotes, so that "1" is not taken for 1; longer texts stand as they are written. */
function textOf(value: unknown): string {
  const isLong = typeof value === 'string' && value.includes('\n')
  return showMarks(isLong ? value : (JSON.stringify(value, null, 2) ?? ''))
}

/** Marks that turn the direction of text or take no room could show another value than the one that is meant. */
export const showMarks = (text: string): string =>
  text.replace(
    /[\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]|[\u{e0000}-\u{e007f}]/gu,
    (mark) => `⟨U+${(mark.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}⟩`,
  )
