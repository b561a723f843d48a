// The decisions of the offline model, by name. A rule reads the words of the prompt, compares whole words and

import type { Decided, DecisionName, DelegationDecision, PlannedTask, Subtask } from '../kernel/decision.ts'
import { createPhraseFinder, wordsOf } from '../kernel/phrases.ts'
import { CLOSING, withoutClosing } from './offline-prose.ts'
import { type OfflineStep, stepsIn } from './offline-steps.ts'
import { decideAsSupervisor, summariseWork } from './offline-supervisor.ts'
// understands nothing. The same prompt always gets the same decision, and every decision fits its schema.
//   delegation_decision  goes to the subordinate whose competencies stand in the task; else whose role or name does. A task
//                        that lists things for different subordinates is not handed to one of them.
//   task_plan            has a subtask for each thing that the task lists (offline-steps.ts), and none for a plain task.
//   queen_plan           is the same for a goal; a plain goal becomes two subtasks that do not wait for each other.
//   queen_adjust         waits.
//   queen_review         accepts the results and puts them together.
//   supervisor_decision, agent_summary   are in offline-supervisor.ts.
import { dividedAtLast } from './offline-tasks.ts'
import { capitalised, cut, firstSentence, listed, lowered, shortened } from './offline-words.ts'

/** The offline model is never asked for genui_layout (bin/ask-model.ts). */
type Ruled = Exclude<DecisionName, 'genui_layout'>
type DecisionOf<Name extends DecisionName> = Extract<Decided<Name>, { ok: true }>['decision']

const rules: { readonly [Name in Ruled]: (prompt: string, said: string) => DecisionOf<Name> } = {
  delegation_decision: decideDelegation,
  task_plan: planTask,
  queen_plan: planGoal,
  queen_adjust: () => ({ action: 'wait' }),
  queen_review: reviewResults,
  supervisor_decision: decideAsSupervisor,
  agent_summary: (_, said) => summariseWork(said),
}

/** `said` holds the model's last words before the question. Null if no rule decides this. */
export function offlineDecision(name: string | undefined, prompt: string, said = ''): DecisionOf<Ruled> | null {
  return name !== undefined && isRuled(name) ? rules[name](prompt, said) : null
}

const isRuled = (name: string): name is Ruled => Object.hasOwn(rules, name)

/** The most that is read of a task or a goal, and of a list of subordinates or competencies. */
const LONGEST_TASK = 20_000
const LONGEST_LIST = 50_000

interface Subordinate {
  name: string
  role: string
  competencies: string[]
  openTasks: number
}

const SUBORDINATES = '\nYour subordinates who are available:'
const LONGEST_NAME = 200
const MOST_NAMED = 5

function decideDelegation(prompt: string): DelegationDecision {
  const [asked, list] = dividedAtLast(prompt, SUBORDINATES)
  const task = taskIn(asked)
  const subordinates = list.slice(0, LONGEST_LIST).split('\n').flatMap(readSubordinate)
  const keepIt = (reasoning: string): DelegationDecision => ({ delegate: false, subordinate: null, reasoning })
  if (subordinates.length === 0) return keepIt('There is nobody to delegate the task to.')
  const text = `${task.title}\n${task.description}`
  const skilledIn = createChooser(subordinates, ({ competencies }) => competencies)
  const wanted = new Set(stepsOf(task).flatMap((step) => skilledIn(step.text)?.subordinate ?? []))
  if (wanted.size > 1) {
    return keepIt('The task lists things that different subordinates know, so it is split and not handed to one.')
  }
  const skilled = skilledIn(text)
  if (skilled) return handOver(skilled, (words, name) => `The task speaks of ${words}, which ${name} knows.`)
  const called = createChooser(subordinates, ({ role, name }) => wordsOf(`${role} ${name}`).filter(isTelling))(text)
  if (called)
    return handOver(called, (words, name) => `The task speaks of ${words}, as the role or name of ${name} does.`)
  return keepIt('The task speaks of nothing that a subordinate is known for, so it is not delegated.')
}

function handOver(
  { subordinate: { name }, met }: Found,
  reasonOf: (words: string, name: string) => string,
): DelegationDecision {
  const words = met.map((word) => shortened(word, LONGEST_NAME))
  return {
    delegate: true,
    // A name that does not fit the answer is left to Muster to choose.
    subordinate: name.length <= LONGEST_NAME ? name : null,
    reasoning: reasonOf(listed(words, MOST_NAMED), shortened(name, LONGEST_NAME)),
  }
}

interface Found {
  subordinate: Subordinate
  /** The phrases of the subordinate that the task contains. */
  met: string[]
}

/** Chooses the subordinate with the most phrases in a text, then with the fewest open tasks, then the first. */
function createChooser(
  subordinates: readonly Subordinate[],
  phrasesOf: (subordinate: Subordinate) => readonly string[],
): (text: string) => Found | null {
  const known = subordinates.map((subordinate) => ({ subordinate, phrases: [...new Set(phrasesOf(subordinate))] }))
  const phrasesIn = createPhraseFinder(known.flatMap(({ phrases }) => phrases))
  return (text) => {
    const inText = phrasesIn(text)
    let best: Found | null = null
    for (const { subordinate, phrases } of known) {
      const met = phrases.filter((phrase) => inText.has(phrase))
      const lead = met.length - (best?.met.length ?? 0)
      const isLessBusy = best !== null && subordinate.openTasks < best.subordinate.openTasks
      if (lead > 0 || (lead === 0 && met.length > 0 && isLessBusy)) best = { subordinate, met }
    }
    return best
  }
}

/** "- Ada (a tester): knows testing, python; 2 open tasks; 1000 tokens left" */
function readSubordinate(text: string): Subordinate[] {
  const line = text.trim()
  const at = line.lastIndexOf(': knows ')
  if (!line.startsWith('- ') || at === -1) return []
  const head = line.slice(2, at).trim()
  const facts = line.slice(at + ': knows '.length).split(';')
  const busy = facts.findIndex((fact) => /^\s*\d{1,9} open tasks?\b/.test(fact))
  const roleAt = head.endsWith(')') ? head.indexOf(' (') : -1
  const knows = facts.slice(0, busy === -1 ? 1 : busy).join(';')
  return [
    {
      name: roleAt > 0 ? head.slice(0, roleAt) : head,
      role: roleAt > 0 ? head.slice(roleAt + 2, -1) : '',
      competencies: competenciesIn(knows),
      openTasks: busy === -1 ? 0 : Number.parseInt(facts[busy] ?? '', 10),
    },
  ]
}

const competenciesIn = (list: string): string[] =>
  list
    .split(',')
    .map((each) => each.trim())
    .filter((each) => each !== '' && each !== 'nothing in particular' && each !== 'none')

/** Words that stand in every role and in every task. */
const EMPTY_WORDS = new Set(
  'a an the and or of for to in on at by with from who that this it is are as all any our your my agent'.split(' '),
)
const isTelling = (word: string): boolean => !EMPTY_WORDS.has(word)

const AT_HAND = '\nCompetencies that are at hand:'
const MOST_COMPETENCIES = 100

function planTask(prompt: string): { subtasks: PlannedTask[] } {
  const [asked, list] = dividedAtLast(prompt, AT_HAND)
  const competenciesOf = createPhraseFinder(competenciesIn(list.slice(0, LONGEST_LIST).split('\n')[0] ?? ''))
  const parts = partsOf(stepsOf(taskIn(asked)))
  return {
    subtasks: parts.map(({ text, ...part }) => ({
      ...part,
      competencies: [...competenciesOf(text)].slice(0, MOST_COMPETENCIES),
    })),
  }
}

function stepsOf({ title, description }: { title: string; description: string }): readonly OfflineStep[] {
  const inDescription = stepsIn(description)
  return withoutRest(inDescription.length > 0 ? inDescription : stepsIn(title))
}

const GOAL = 'The goal: '
const WORKERS = '\nThe workers: '

function planGoal(prompt: string): { subtasks: Subtask[] } {
  const [asked] = dividedAtLast(prompt, WORKERS)
  const goal = behind(asked, GOAL).slice(0, LONGEST_TASK).trim()
  const steps = stepsIn(goal)
  const parts = partsOf(steps.length > 0 ? steps : halvesOf(goal))
  return { subtasks: parts.map(({ text: _, ...part }) => ({ ...part, workers: 1 })) }
}

const halvesOf = (goal: string): OfflineStep[] =>
  ['Gather the facts', 'Look for risks'].map((side) => ({
    text: `${side}: ${lowered(shortened(goal, LONGEST_DESCRIPTION)) || 'the goal'}`,
    isAfterPrevious: false,
  }))

const MOST_PARTS = 12
const LONGEST_TITLE = 120
/** Twelve parts of this length fit the tokens that an agent may answer with by default. */
const LONGEST_DESCRIPTION = 400

interface PlanPart {
  id: string
  title: string
  description: string
  depends_on: string[]
  text: string
}

/**
 * A part's text names its own subject only: words of the whole task would be taken for the part's own when the part is
 * delegated or planned in turn.
 */
function partsOf(steps: readonly OfflineStep[]): PlanPart[] {
  return withoutRest(steps).map(({ text, isAfterPrevious }, place) => ({
    id: `part-${place + 1}`,
    title: capitalised(firstSentence(text, LONGEST_TITLE) || shortened(text, LONGEST_TITLE)),
    description: `Do this part of a larger task: ${cut(text, LONGEST_DESCRIPTION)}`,
    depends_on: isAfterPrevious ? [`part-${place}`] : [],
    text,
  }))
}

/** The last part takes the steps for which there is no room, as a list. */
function withoutRest(steps: readonly OfflineStep[]): readonly OfflineStep[] {
  if (steps.length <= MOST_PARTS) return steps
  const rest = steps.slice(MOST_PARTS - 1)
  const lines = rest.map(({ text, isAfterPrevious }, place) => `${isAfterPrevious ? `${place + 1}.` : '-'} ${text}`)
  const text = `The rest of the list:\n${lines.join('\n')}`
  return [...steps.slice(0, MOST_PARTS - 1), { text, isAfterPrevious: rest[0]?.isAfterPrevious ?? false }]
}

const REVIEW = 'say whether it is acceptable.\n'
const FAILED = '\nThese failed:\n'
/** A report of this length fits the tokens that an agent may answer with by default. */
const LONGEST_REPORT = 6_000
const MOST_PROBLEMS = 10

function reviewResults(prompt: string): DecisionOf<'queen_review'> {
  const [results, failures] = dividedAtLast(behind(prompt, REVIEW), FAILED)
  const problems = failures
    .slice(0, LONGEST_TASK)
    .split('\n')
    .filter((line) => line.startsWith('- '))
    .slice(0, MOST_PROBLEMS)
    .map((line) => shortened(line.slice(2), LONGEST_TITLE))
  const found = withoutClosing(results.slice(0, LONGEST_TASK)).trim()
  const report = `The team's results, put together:\n\n${cut(found, LONGEST_REPORT) || 'There are none.'}\n\n${CLOSING}`
  return { acceptable: true, problems, report }
}

/** The task of a prompt, whose first line is its title. */
function taskIn(asked: string): { title: string; description: string } {
  const task = behind(asked, 'Task: ').slice(0, LONGEST_TASK).trim()
  const end = task.indexOf('\n')
  return end === -1 ? { title: task, description: '' } : { title: task.slice(0, end), description: task.slice(end + 1) }
}

/** The text behind the first place of these words; the whole text if they are not in it. */
function behind(text: string, words: string): string {
  const at = text.indexOf(words)
  return at === -1 ? text : text.slice(at + words.length)
}
