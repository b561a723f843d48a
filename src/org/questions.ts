// The questions an agent is asked before it works on a task. The offline model reads these words too.
import type { Matcher } from './competency.ts'
import type { Subordinate } from './desk.ts'
import { shortForAgents } from './task-text.ts'
import type { WorkTask } from './work-row.ts'

const MOST_NAMED = 200
/** The most characters that a question spends on the competencies of one agent, and of all agents. */
const KNOWN_OF_ONE = 500
const KNOWN_OF_ALL = 20_000

type Asked = Pick<WorkTask, 'title' | 'description' | 'metadata'>

export function delegationQuestion(
  task: Asked,
  subordinates: readonly Subordinate[],
  matcher: Matcher<Subordinate>,
): string {
  return [
    'Decide whether you do this task yourself or delegate it.',
    describe(task),
    `Your subordinates who are available:\n${firstOf(task, subordinates, matcher).map(line).join('\n')}`,
    'Delegate if one of them suits the task better than you do: name that one, or give null to have the best one chosen.',
  ].join('\n\n')
}

/** If there are too many subordinates to name them all, those that suit the task come first. */
function firstOf(
  task: Asked,
  subordinates: readonly Subordinate[],
  matcher: Matcher<Subordinate>,
): readonly Subordinate[] {
  if (subordinates.length <= MOST_NAMED) return subordinates
  const suitable = matcher.rank(matcher.needsOf(task)).map(({ candidate }) => candidate.id)
  const place = new Map(suitable.map((id, index) => [id, index]))
  const placeOf = ({ id }: Subordinate): number => place.get(id) ?? suitable.length
  return subordinates.toSorted((a, b) => placeOf(a) - placeOf(b)).slice(0, MOST_NAMED)
}

export function planQuestion(task: Asked, known: readonly { competencies: readonly string[] }[]): string {
  const competencies = [...new Set(known.flatMap((each) => each.competencies))]
  return [
    'Decide whether this task is split into subtasks.',
    describe(task),
    `Competencies that are at hand: ${listed(competencies, KNOWN_OF_ALL) || 'none in particular'}`,
    'Split it only if it has parts that can be done apart. Give an empty list to do it in one piece.',
  ].join('\n\n')
}

function describe({ title, description }: Pick<Asked, 'title' | 'description'>): string {
  return [`Task: ${title}`, shortForAgents(description)].filter((part) => part !== '').join('\n\n')
}

function listed(words: readonly string[], most: number): string {
  let room = most
  const shown = words.filter((word) => {
    room -= word.length + 2
    return room >= 0
  })
  return shown.join(', ')
}

function line({ name, role, competencies, load, tokensLeft }: Subordinate): string {
  const knows = listed(competencies, KNOWN_OF_ONE) || 'nothing in particular'
  const left = tokensLeft === null ? 'no token limit' : `${tokensLeft} tokens left`
  return `- ${name}${role ? ` (${role})` : ''}: knows ${knows}; ${load} open tasks; ${left}`
}
