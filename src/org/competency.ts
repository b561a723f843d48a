// Finds the agent that suits a task: by competency, then by load, then by the tokens that are left. Competencies
// (hundreds of subordinates may have a hundred each) are read once for all tasks that are judged together.
import { createPhraseFinder } from '../kernel/phrases.ts'

export interface Candidate {
  id: string
  name: string
  competencies: readonly string[]
  /** The number of the agent's open tasks. It changes while tasks are given out. */
  load: number
  /** The tokens that are left; null if there is no limit. */
  tokensLeft: number | null
}

export interface Match<Kind extends Candidate = Candidate> {
  candidate: Kind
  /** The needs that the candidate's competencies meet. */
  met: string[]
}

interface TaskInWords {
  title: string
  description: string
  metadata: Readonly<Record<string, unknown>>
}

export interface Matcher<Kind extends Candidate> {
  /** The competencies that the task names, else those of candidates whose words are in its title and description. */
  needsOf(task: TaskInWords): string[]
  /** The best first. Candidates that meet no need are left out, unless the task needs nothing in particular. */
  rank(needs: readonly string[]): Match<Kind>[]
}

const MOST_NEEDS = 100
/** At most this many characters of a description are read. */
const MOST_CHARACTERS = 50_000

const plain = (text: string): string => text.normalize('NFKC').toLowerCase().trim()

export function createMatcher<Kind extends Candidate>(candidates: readonly Kind[]): Matcher<Kind> {
  /** The candidates that have a competency, each with the competency's place in the candidate's list. */
  const holders = new Map<string, Map<Kind, number>>()
  for (const candidate of candidates) {
    for (const [place, competency] of candidate.competencies.entries()) {
      const key = plain(competency)
      if (key === '') continue
      const those = holders.get(key) ?? new Map<Kind, number>()
      holders.set(key, those)
      if (!those.has(candidate)) those.set(candidate, place)
    }
  }
  let find: ((text: string) => Set<string>) | null = null

  return {
    needsOf: ({ title, description, metadata }) => {
      const named = metadata.competencies
      if (Array.isArray(named) && named.length > 0) {
        return unique(named.filter((each) => typeof each === 'string').slice(0, MOST_NEEDS))
      }
      find ??= createPhraseFinder(holders.keys())
      return [...find(`${title}\n${description.slice(0, MOST_CHARACTERS)}`)].slice(0, MOST_NEEDS).map(inWords)
    },
    rank: (needs) => {
      const wanted = [...new Set(needs.map(plain))].filter((key) => key !== '')
      if (wanted.length === 0) return candidates.map((candidate) => ({ candidate, met: [] })).sort(compare)
      const places = new Map<Kind, number[]>()
      for (const key of wanted) {
        for (const [candidate, place] of holders.get(key) ?? []) {
          places.set(candidate, [...(places.get(candidate) ?? []), place])
        }
      }
      const metBy = (candidate: Kind, met: number[]): string[] =>
        met.toSorted((a, b) => a - b).map((place) => candidate.competencies[place] ?? '')
      return Array.from(places, ([candidate, met]) => ({ candidate, met: metBy(candidate, met) })).sort(compare)
    },
  }

  /** The competency as its first holder writes it. */
  function inWords(key: string): string {
    const [first] = holders.get(key) ?? []
    return first ? (first[0].competencies[first[1]] ?? key) : key
  }
}

function compare(a: Match, b: Match): number {
  return (
    b.met.length - a.met.length ||
    a.candidate.load - b.candidate.load ||
    (b.candidate.tokensLeft ?? Number.MAX_SAFE_INTEGER) - (a.candidate.tokensLeft ?? Number.MAX_SAFE_INTEGER) ||
    (a.candidate.name < b.candidate.name ? -1 : 1)
  )
}

/** The choice in words, for the task's metadata. `needs` is null if the model chose for a reason of its own. */
export function explainMatch({ candidate, met }: Match, needs: readonly string[] | null): string {
  const known = needs?.length === 0 ? 'The task needs no particular competency' : `It knows ${met.join(', ')}`
  const left = candidate.tokensLeft === null ? 'no token limit' : `${candidate.tokensLeft} tokens left`
  const rest = `${candidate.load} open tasks and ${left}.`
  return needs === null ? `It has ${rest}` : `${known}; ${rest}`
}

function unique(texts: readonly string[]): string[] {
  const seen = new Map<string, string>()
  for (const text of texts) if (plain(text) !== '' && !seen.has(plain(text))) seen.set(plain(text), text)
  return [...seen.values()]
}
