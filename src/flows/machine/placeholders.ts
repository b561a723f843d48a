// The grammar of placeholders in a flow's values. The messages for authors of flows call a placeholder a template.
//
//   placeholder = "{{" root *( "." name ) [ "?" ] "}}"       blanks may stand inside the braces
//   root        = "input" | "previous" | "item" | "results"
//   name        = anything without braces, dots, blanks and a place in square brackets
//
// A placeholder that ends in "?" may name a value that is not there. Double braces around anything that begins with a
// root, or that is names with dots between them, are meant as a placeholder, and are wrong if they are none. Double
// braces before a root that are not closed are wrong too. All other double braces are text.
import { didYouMean, withGuess } from '../../kernel/nearest.ts'

export const roots = ['input', 'previous', 'item', 'results'] as const
export type Root = (typeof roots)[number]

export interface Placeholder {
  root: Root
  path: readonly string[]
  /** The value may be missing. */
  isOptional: boolean
}

export interface WrongPlaceholder {
  wrong: string
}

/** Anything in double braces; the group is the text between them. */
export const BRACES = /\{\{([^{}]*)\}\}/g
const ONLY_BRACES = /^\{\{([^{}]*)\}\}$/

/** The same, and double braces before a root that are not closed: the second group is the rest of the text then. */
const BRACES_OR_OPEN = /\{\{([^{}]*)\}\}|\{\{(\s*(?:input|previous|item|results)(?![\w$-])[^{}]*)/g

const PLACEHOLDER = /^\s*(input|previous|item|results)((?:\.[^{}.\s]+?)*)(\?)?\s*$/
const NAMES = /^\s*([A-Za-z_$][\w$-]*)(?:\.[^{}.\s]+)*\s*$/
/** A quoted name has no quotes and no brackets inside, so that a long text without an end is read once. */
const IN_BRACKETS = /\[ *(?:"([^"'[\]]*)"|'([^"'[\]]*)'|(-?\d+)) *\]/g
const BEGINS_WITH_ROOT = /^\s*(?:input|previous|item|results)(?![\w$-])/

/** The placeholder between two pairs of braces, the reason why it is none, or null where this is text. */
export function readPlaceholder(inner: string): Placeholder | WrongPlaceholder | null {
  const found = PLACEHOLDER.exec(inner)
  const withDots = inner.includes('[') ? bracketsAsDots(inner) : inner
  if (withDots !== inner && PLACEHOLDER.test(withDots)) {
    return { wrong: `is no template: brackets are not read, write {{${withDots.slice(0, LONGEST_SHOWN)}}}` }
  }
  if (found) {
    const [, root, path = '', mark] = found
    return { root: root as Root, path: path.split('.').slice(1), isOptional: mark !== undefined } // one of the four
  }
  if (BEGINS_WITH_ROOT.test(inner)) {
    return { wrong: 'is no template: a path is names with dots between them, such as {{input.name}}' }
  }
  const root = NAMES.exec(inner.replace(/\?\s*$/, ''))?.[1]
  if (root === undefined) return null
  return { wrong: withGuess('begins with none of input, previous, item and results', didYouMean(root, roots)) }
}

const bracketsAsDots = (inner: string): string =>
  inner.replaceAll(IN_BRACKETS, (_, ...found: (string | undefined)[]) => `.${found.slice(0, 3).join('')}`)

/** The inside of the braces, if the whole text is in double braces. */
export const onlyBraces = (text: string): string | null => ONLY_BRACES.exec(text)?.[1] ?? null

/** The placeholder, where the whole text is one: its value keeps its type. */
export function onlyPlaceholder(text: string): Placeholder | null {
  const inner = onlyBraces(text)
  const placeholder = inner === null ? null : readPlaceholder(inner)
  return placeholder && 'root' in placeholder ? placeholder : null
}

/** The letters of a placeholder that an error shows. */
export const LONGEST_SHOWN = 200

const SHOWN_OPEN = 60
const NOT_CLOSED: WrongPlaceholder = { wrong: 'is not closed: a template ends with two braces, such as {{input.name}}' }

export interface PlaceholderUse {
  /** The path to the text within the value: names and places. */
  at: readonly (string | number)[]
  /** The placeholder as it stands in the text. */
  text: string
  placeholder: Placeholder | WrongPlaceholder
}

/** All placeholders in the texts of a value, however deep. Names of properties are none. */
export function placeholdersIn(value: unknown): PlaceholderUse[] {
  const uses: PlaceholderUse[] = []
  const waiting: { value: unknown; at: PlaceholderUse['at'] }[] = [{ value, at: [] }]
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    const { value: each, at } = next
    if (typeof each === 'string') {
      if (!each.includes('{{')) continue
      for (const [text, inner = '', open] of each.matchAll(BRACES_OR_OPEN)) {
        const placeholder = open === undefined ? readPlaceholder(inner) : NOT_CLOSED
        if (placeholder)
          uses.push({ at, text: text.slice(0, open === undefined ? LONGEST_SHOWN : SHOWN_OPEN), placeholder })
      }
    } else if (each !== null && typeof each === 'object') {
      const isList = Array.isArray(each)
      // The last is taken first, and the uses are told in the order of the value.
      for (const [name, below] of Object.entries(each).reverse()) {
        if (typeof below !== 'string' && typeof below !== 'object') continue
        waiting.push({ value: below, at: [...at, isList ? Number(name) : name] })
      }
    }
  }
  return uses
}
