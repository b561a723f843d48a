// The facts that a description states: the number of items, workers, rounds and steps, and the size of an item. A
// number counts the word after it; times, shares and versions count nothing.
import { cutText } from '../../kernel/cut-text.ts'
import type { WorkloadFacts } from '../machine/workload.ts'

const NUMBERS: Readonly<Record<string, number>> = {
  two: 2,
  three: 3,
  four: 4,
  five: 5,
  six: 6,
  seven: 7,
  eight: 8,
  nine: 9,
  ten: 10,
  twelve: 12,
  twenty: 20,
  fifty: 50,
  dozen: 12,
  hundred: 100,
  thousand: 1_000,
  million: 1_000_000,
  // Without a number before them these words mean several things: three of each.
  dozens: 36,
  hundreds: 300,
  thousands: 3_000,
  millions: 3_000_000,
}
const SCALES: Readonly<Record<string, number>> = {
  k: 1e3,
  m: 1e6,
  dozen: 12,
  hundred: 100,
  thousand: 1e3,
  million: 1e6,
}
const MOST = 1_000_000_000
/** Only this many characters of the text are read, so that no description takes long to read. */
const LONGEST_TEXT = 4_000
const TOKENS_PER_WORD = 4 / 3
const TOKENS_PER_PAGE = 700

const COUNTED = new RegExp(
  // the number, its scale, and up to three words after it
  `(?<![\\w.])(\\d[\\d,_]{0,20}(?:\\.\\d+)?|${Object.keys(NUMBERS).join('|')})(?:\\s?(k|m)\\b|\\s+(dozen|hundred|thousand|million)\\b)?(\\s*%)?[\\s-]+(?:of\\s+)?([a-z-]+)(?:\\s+([a-z-]+))?(?:\\s+([a-z-]+))?`,
  'gi',
)
const WORKERS = /^(workers?|agents?|machines?|threads?)$/
const ROUNDS = /^(times|rounds?|iterations?|attempts?|tries|passes|drafts?|revisions?)$/
const STEPS = /^(steps?|stages?|phases?)$/
const TIME =
  /^(ms|milliseconds?|s|seconds?|minutes?|min|hours?|days?|weeks?|months?|years?|x|percent|usd|dollars?|euros?)$/
const SIZES: readonly [words: RegExp, tokens: number][] = [
  [/^tokens?$/, 1],
  [/^words?$/, TOKENS_PER_WORD],
  [/^pages?$/, TOKENS_PER_PAGE],
]
const ORDER =
  /\s*(?:→|->|=>|[,;.]?\s*\b(?:and then|then|after that|afterwards|followed by|and finally|finally|next)\b,?)\s*/i

export function readWorkload(workload: string): WorkloadFacts {
  const text = tidied(workload)
  const facts: WorkloadFacts = {
    text,
    items: null,
    workers: null,
    rounds: null,
    steps: text.split(ORDER).flatMap((step) => step.replace(/^\W+|[\s,;.]+$/g, '') || []),
    stepCount: null,
    tokensPerItem: null,
  }
  for (const [, digits = '', letter, word, percent, ...nouns] of text.matchAll(COUNTED)) {
    if (percent === undefined) note(facts, countOf(digits, letter ?? word), nouns)
  }
  return facts
}

/** Collapses sequences of spaces, over which the regular expressions would backtrack. */
const tidied = (workload: string): string =>
  cutText(workload, LONGEST_TEXT)
    .replaceAll(/[^\S\n]+/g, ' ')
    .replaceAll(/ ?\n[ \n]*/g, '\n')
    .trim()

function countOf(digits: string, scale = ''): number {
  const count = NUMBERS[digits.toLowerCase()] ?? Number(digits.replaceAll(/[,_]/g, ''))
  return Math.min(MOST, Math.round(count * (SCALES[scale.toLowerCase()] ?? 1)))
}

/** The counted noun may stand behind other words: "five parallel workers". */
function note(facts: WorkloadFacts, count: number, nouns: readonly (string | undefined)[]): void {
  const words = nouns.flatMap((noun) => noun?.toLowerCase() ?? [])
  const [first = ''] = words
  if (count < 1 || TIME.test(first)) return
  const size = SIZES.find(([noun]) => noun.test(first))
  // "2,000 words each" and "a 300-page book" give the size of one item. "40 pages" may be the items themselves.
  if (size && (first !== 'pages' || /^(each|long|per)$/.test(words[1] ?? ''))) {
    facts.tokensPerItem = Math.round(count * size[1])
  } else if (words.some((word) => STEPS.test(word))) facts.stepCount = count
  else if (ROUNDS.test(first)) facts.rounds = count
  else if (words.slice(0, 2).some((word) => WORKERS.test(word))) facts.workers = count
  else facts.items = Math.max(facts.items ?? 0, count)
}
