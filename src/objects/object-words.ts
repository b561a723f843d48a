// Which words an object is found by. The rule is the same for what is stored and for what is asked: letters, digits and
// pictures count, case does not, and a word that is asked for may be the beginning of one that is stored. Scripts that are
// written without spaces are found from every character on. (PostgreSQL's own
// parser takes "order-17" for a word and the number -17, and an address for one word; who types 17 would not find it.)

const MOST_WORDS = 20_000
/** Together; PostgreSQL takes a megabyte. */
const MOST_CHARACTERS = 200_000
/** Longer ones are cut, here and in queries. */
const LONGEST_WORD = 60

export function wordsOf(key: string | null, properties: Readonly<Record<string, unknown>>): string[] {
  const words = createWords()
  if (key !== null) words.add(key, true)
  addValues(words, properties)
  return words.list()
}

/** A tsquery for all of these words, each as a beginning; null where the text holds none. */
export function wordsQuery(text: string): string | null {
  const words = createWords()
  words.add(text, false)
  const list = words.list()
  return list.length === 0 ? null : list.map((word) => `'${word}':*`).join(' & ')
}

interface Words {
  /** `isStored`: it shall be found from within, where its script has no spaces. */
  add(text: string, isStored: boolean): void
  isFull(): boolean
  list(): string[]
}

function createWords(): Words {
  const words = new Set<string>()
  let characters = 0
  const isFull = (): boolean => words.size >= MOST_WORDS || characters >= MOST_CHARACTERS
  const keep = (word: readonly string[]): void => {
    const cut = word.slice(0, LONGEST_WORD).join('')
    if (words.has(cut)) return
    words.add(cut)
    characters += cut.length
  }
  return {
    isFull,
    list: () => [...words],
    add: (text, isStored) => {
      // By way of capitals, because ß and SS are the same word.
      const folded = text.normalize('NFKC').toUpperCase().toLowerCase()
      for (const [word] of folded.matchAll(WORD)) {
        if (isFull()) return
        const letters = [...word]
        keep(letters)
        if (isStored && UNSPACED.test(word)) {
          for (let from = 1; from < letters.length && !isFull(); from++) keep(letters.slice(from))
        }
      }
    },
  }
}

const WORD = /[\p{L}\p{M}\p{N}]+|\p{Extended_Pictographic}/gu
const UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]/u

function addValues(words: Words, value: unknown): void {
  if (words.isFull()) return
  if (typeof value === 'string') words.add(value, true)
  else if (typeof value === 'number') words.add(String(value), true)
  else if (value !== null && typeof value === 'object') {
    for (const inner of Object.values(value)) addValues(words, inner)
  }
}
