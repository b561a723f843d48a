// Reads JSON that a person writes, and says where it is wrong. Browsers tell the place in different ways, and some not
// at all, so it is looked for here.

export interface JsonProblem {
  message: string
  /** From 1. */
  line: number
  column: number
  /** From 0, in characters. */
  offset: number
}

export type Parsed = { value: unknown } | { problem: JsonProblem }

export function parseJson(text: string): Parsed {
  try {
    return { value: JSON.parse(text) as unknown }
  } catch {
    const { offset, expected } = firstMistake(text)
    const before = text.slice(0, offset).split('\n')
    const column = (before.at(-1)?.length ?? 0) + 1
    return { problem: { message: inWords(text, offset, expected), line: before.length, column, offset } }
  }
}

function inWords(text: string, offset: number, expected: string): string {
  if (text.trim() === '') return 'The text is empty.'
  if (offset >= text.length) return `The text ends too early: ${expected} is missing.`
  const [found = ''] = /^[\w.-]+|^./su.exec(text.slice(offset, offset + 20)) ?? []
  return `Expected ${expected}, found ${found === '"' ? 'a quotation mark' : JSON.stringify(found)}.`
}

type State = 'value' | 'first value' | 'key' | 'first key' | 'colon' | 'after' | 'end'

const EXPECTED: Readonly<Record<State, string>> = {
  value: 'a value',
  'first value': 'a value or ]',
  key: 'a name in quotation marks',
  'first key': 'a name in quotation marks or }',
  colon: 'a colon',
  after: 'a comma or the closing bracket',
  end: 'the end of the text',
}

const SPACE = /[ \t\r\n]*/y
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON allows no control characters in texts
const STRING = /"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y
const PLAIN = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y

/** Goes through the text token by token until one does not belong. */
function firstMistake(text: string): { offset: number; expected: string } {
  const open: ('{' | '[')[] = []
  let state: State = 'value'
  let offset = 0
  const take = (pattern: RegExp): boolean => {
    pattern.lastIndex = offset
    if (!pattern.test(text)) return false
    offset = pattern.lastIndex
    return true
  }
  const done = (): State => (open.length === 0 ? 'end' : 'after')
  for (;;) {
    take(SPACE)
    const next = nextState(text[offset])
    if (next === null) return { offset, expected: EXPECTED[state] }
    state = next
  }

  function nextState(letter: string | undefined): State | null {
    const closes = (letter === '}' && open.at(-1) === '{') || (letter === ']' && open.at(-1) === '[')
    if (closes && (state === 'after' || state === 'first value' || state === 'first key')) {
      open.pop()
      offset++
      return done()
    }
    switch (state) {
      case 'value':
      case 'first value':
        if (letter !== '{' && letter !== '[') return take(STRING) || take(PLAIN) ? done() : null
        open.push(letter)
        offset++
        return letter === '{' ? 'first key' : 'first value'
      case 'key':
      case 'first key':
        return take(STRING) ? 'colon' : null
      case 'colon':
        return letter === ':' && ++offset ? 'value' : null
      case 'after':
        return letter === ',' && ++offset ? (open.at(-1) === '{' ? 'key' : 'value') : null
      case 'end':
        return null
    }
  }
}
