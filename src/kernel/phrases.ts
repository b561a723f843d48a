// Words and phrases of a text. The work is linear in the text and in the phrases.

/** Marks belong to the letter before them; "C", "C++" and "C#" are three words. */
export const WORD = /[\p{L}\p{N}\p{M}]+[+#]*/gu
/** A longer phrase is not looked for: every place of a text is compared with each length of phrase that is wanted. */
const MOST_WORDS = 8

export const wordsOf = (text: string): string[] => text.normalize('NFKC').toLowerCase().match(WORD) ?? []

/** Gives the phrases that occur in a text as whole words, whatever their case; "test" does not occur in "testing". */
export function createPhraseFinder(phrases: Iterable<string>): (text: string) => Set<string> {
  const wanted = new Map<string, string[]>()
  const lengths = new Map<string, Set<number>>()
  for (const phrase of phrases) {
    const words = wordsOf(phrase)
    const [first] = words
    if (first === undefined || words.length > MOST_WORDS) continue
    entry(wanted, words.join(' '), () => []).push(phrase)
    entry(lengths, first, () => new Set<number>()).add(words.length)
  }
  return (text) => {
    const words = wordsOf(text)
    const seen = new Set<string>()
    for (const [at, word] of words.entries()) {
      for (const length of lengths.get(word) ?? []) seen.add(words.slice(at, at + length).join(' '))
    }
    return new Set([...seen].flatMap((words) => wanted.get(words) ?? []))
  }
}

function entry<Value>(map: Map<string, Value>, key: string, create: () => Value): Value {
  const known = map.get(key)
  if (known !== undefined) return known
  const value = create()
  map.set(key, value)
  return value
}
