// The words by which an object is found, the same for objects and queries: letters, digits and pictures count, case
// does not, and a word of a query may be the beginning of a stored word. In scripts without spaces a word is found from
// every character on. (PostgreSQL's own parser takes "order-17" for a word and the number -17.)

const MOST_WORDS = 20_000
/** The most characters of all words together; PostgreSQL takes a megabyte. */
const MOST_CHARACTERS = 200_000
/** Longer words are cut, in objects and in queries. */
const LONGEST_WORD = 60
/** A repeated word costs time as well, so at most this many beginnings of words are read, and this many texts. */
const MOST_PLACES = 200_000
/** Folding can turn one character into eighteen; an object holds a million at most. */
const MOST_FOLDED = 1_100_000

export function objectWords(key: string | null, properties: Readonly<Record<string, unknown>>): string[] {
  const words = createWords()
  if (key !== null) words.add(key, true)
  addValues(words, properties)
  return words.list()
}

/** A tsquery for all words of the text, each as a beginning; null if the text holds none. */
export function wordsQuery(text: string): string | null {
  const words = createWords()
  words.add(text, false)
  const list = words.list()
  return list.length === 0 ? null : list.map((word) => `'${word}':*`).join(' & ')
}

/**
 * The same for a search while somebody types. A short word of letters and digits begins a great part of all words, so
 * it must be a whole word.
 */
export function soughtWords(text: string): string | null {
  const words = createWords()
  words.add(text, false)
  const list = words.list().map((word) => (/^[a-z0-9]{1,2}$/.test(word) ? `'${word}'` : `'${word}':*`))
  return list.length === 0 ? null : list.join(' & ')
}

interface Words {
  /** In a script without spaces a stored text is found from every character on. */
  add(text: string, isStored: boolean): void
  isFull(): boolean
  list(): string[]
}

function createWords(): Words {
  const words = new Set<string>()
  let characters = 0
  let places = 0
  let folded = 0
  const isFull = (): boolean => words.size >= MOST_WORDS || characters >= MOST_CHARACTERS || places >= MOST_PLACES
  const keep = (word: string): void => {
    places++
    if (words.has(word)) return
    words.add(word)
    characters += word.length
  }
  return {
    isFull: () => isFull() || folded >= MOST_FOLDED,
    list: () => [...words],
    add: (text, isStored) => {
      places++
      for (let from = 0; from < text.length && folded < MOST_FOLDED; ) {
        const to = endOfPart(text, from)
        addPart(text.slice(from, to), isStored)
        from = to
      }
    },
  }

  function addPart(part: string, isStored: boolean): void {
    const plain = foldedText(part)
    folded += plain.length
    const isAscii = ASCII.test(plain)
    const hasUnspaced = isStored && !isAscii && UNSPACED.test(plain)
    for (const [word] of plain.matchAll(isAscii ? ASCII_WORD : WORD)) {
      if (isFull()) return
      const until = hasUnspaced && UNSPACED.test(word) ? word.length : 1
      for (let from = 0, end = endAfter(word, LONGEST_WORD); from < until && !isFull(); ) {
        keep(word.slice(from, end))
        from += widthAt(word, from)
        end += widthAt(word, end)
      }
    }
  }
}

/** Folding may make a text many times as long: a long text is folded in parts, so that the limit stops it in time. */
const PART_CHARACTERS = 65_536

/** A part ends behind a space if there is one, so that no word is cut. */
function endOfPart(text: string, from: number): number {
  const end = from + PART_CHARACTERS
  if (end >= text.length) return text.length
  const space = text.lastIndexOf(' ', end - 1)
  if (space > from + PART_CHARACTERS / 2) return space + 1
  return widthAt(text, end - 1) === 2 ? end + 1 : end
}

const ASCII = /^[\0-\x7f]*$/
const ASCII_WORD = /[a-z0-9]+/g
/** More marks on one letter than any script writes. Putting them in order takes the square of their number. */
const TOO_MANY_MARKS = /([\p{M}\uff9e\uff9f]{30})[\p{M}\uff9e\uff9f]+/gu

/** Folds by way of capitals, because ß and SS are the same word. */
function foldedText(text: string): string {
  if (ASCII.test(text)) return text.toLowerCase()
  return text.replace(TOO_MANY_MARKS, '$1').normalize('NFKC').toUpperCase().toLowerCase()
}

function endAfter(text: string, characters: number): number {
  let end = 0
  for (let count = 0; count < characters && end < text.length; count++) end += widthAt(text, end)
  return end
}

/** The width of the character at this place: two for a surrogate pair. */
const widthAt = (text: string, at: number): number => ((text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1)

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
