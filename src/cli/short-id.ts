// The first letters of an id, as lists show them. Most ids begin with the millisecond of their creation, so ids of the
// same minute share their first eight letters; the rest of the ids are random from the first letter on.
import { isId } from '../kernel/id.ts'

const TIME_LENGTH = 13
const RANDOM_LENGTH = 8

/** Few enough letters to type, and in practice unique within a project. */
export const shortId = (id: string): string => id.slice(0, id[14] === '7' ? TIME_LENGTH : RANDOM_LENGTH)

/** For a list: each id with as many letters as it takes to tell it from the others. */
export function shortIdsOf(ids: readonly string[]): (id: string) => string {
  const taken = new Map<string, number>()
  for (const id of ids) taken.set(shortId(id), (taken.get(shortId(id)) ?? 0) + 1)
  return (id) => {
    const short = shortId(id)
    if ((taken.get(short) ?? 0) < 2) return short
    const others = ids.filter((other) => other !== id && other.startsWith(short))
    for (let length = short.length + 1; length < id.length; length++) {
      const longer = id.slice(0, length)
      if (!longer.endsWith('-') && !others.some((other) => other.startsWith(longer))) return longer
    }
    return id
  }
}

/** With fewer letters a word such as "bad" or "feed" would count as an id. */
const FEWEST_LETTERS = 4

/** The reference as the beginning of an id, in lower case and without dashes; null if it cannot be one. */
export function idBeginning(reference: string): string | null {
  const letters = reference.toLowerCase().replaceAll('-', '')
  return /^[0-9a-f]{4,32}$/.test(letters) && letters.length >= FEWEST_LETTERS ? letters : null
}

export const beginsWith = (id: string, beginning: string): boolean => id.replaceAll('-', '').startsWith(beginning)

export const isWholeId = (reference: string): boolean => isId(reference)
