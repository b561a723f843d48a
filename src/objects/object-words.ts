// Which words an object is found by. The rule is the same for what is stored and for what is asked: letters and digits
// count, case does not, and a word that is asked for may be the beginning of one that is stored. (PostgreSQL's own
// parser takes "order-17" for a word and the number -17, and an address for one word; who types 17 would not find it.)

const MOST_WORDS = 5_000
/** Longer ones are cut, here and in queries. */
const LONGEST_WORD = 60

export function wordsOf(key: string | null, properties: Readonly<Record<string, unknown>>): string[] {
  const words = new Set<string>()
  if (key !== null) addWords(words, key)
  addValues(words, properties)
  return [...words]
}

/** A tsquery for all of these words, each as a beginning; null where the text holds none. */
export function wordsQuery(text: string): string | null {
  const words = new Set<string>()
  addWords(words, text)
  return words.size === 0 ? null : [...words].map((word) => `'${word}':*`).join(' & ')
}

function addValues(words: Set<string>, value: unknown): void {
  if (words.size >= MOST_WORDS) return
  if (typeof value === 'string') addWords(words, value)
  else if (typeof value === 'number') addWords(words, String(value))
  else if (value !== null && typeof value === 'object') {
    for (const inner of Object.values(value)) addValues(words, inner)
  }
}

function addWords(words: Set<string>, text: string): void {
  for (const [word] of text
    .normalize('NFKC')
    .toLowerCase()
    .matchAll(/[\p{L}\p{M}\p{N}]+/gu)) {
    if (words.size >= MOST_WORDS) return
    words.add([...word].slice(0, LONGEST_WORD).join(''))
  }
}
