// The prose of the offline model: two to four sentences made of the words it was given, about the task, the work and
// the results. The answer of one agent is often the message of another, so the model adds no word of its own for which
// it would call a tool ("ask", "spawn").
import { parsed } from './offline-arguments.ts'
import { instructionIn, isVerb } from './offline-steps.ts'
import { GIVEN } from './offline-system-message.ts'
import { readTaskMessage, type TaskMessage } from './offline-tasks.ts'
import { firstSentence, listed, lowered, shortened, topicsOf } from './offline-words.ts'

export interface ToldResult {
  name: string
  text: string
  isError: boolean
}

export interface Assignment {
  /** The newest user message; if that is an event of the graph, the agent's instructions instead. */
  task: string
  instructions: string
  /** The object of the event, if the message is an event. */
  objectId: string | null
  /** The tool results after the message. */
  results: readonly ToldResult[]
  /** Set for a specialist of a supervisor system: the specialists that did a part of the task before. */
  earlier?: readonly string[] | undefined
}

export const CLOSING = '(Written by the offline model.)'

/** Answers that are quoted need not say again who wrote them. */
export const withoutClosing = (text: string): string => text.replaceAll(` ${CLOSING}`, '')

export function offlineProse(assignment: Assignment): string {
  const { opening, work, ending } = toldOf(assignment)
  const told = assignment.results.length === 0 ? work : resultsTold(assignment.results)
  return [opening, told, ending, CLOSING].filter((part) => part !== undefined).join(' ')
}

/** The answer if tools are forbidden, because a run ends before its work does. */
export function offlineSummary(assignment: Assignment): string {
  const { opening } = toldOf(assignment)
  const told = assignment.results.length === 0 ? 'No tool was called.' : resultsTold(assignment.results)
  return `Summary so far: ${opening} ${told} The rest is left to do. ${CLOSING}`
}

/** No more of a message is read than this for an answer. */
const LONGEST_READ = 10_000
const LONGEST_REQUEST = 140
const LONGEST_MATERIAL = 80
const MOST_TOPICS = 4

interface Told {
  opening: string
  /** A sentence about the work, for an answer without tool results. */
  work: string
  ending?: string
}

function toldOf({ task, instructions, objectId, results, earlier }: Assignment): Told {
  const text = withoutClosing(task.slice(0, LONGEST_READ)).trim()
  if (objectId !== null) return toldOfEvent(objectId, text)
  if (earlier) return toldOfPart(text, earlier)
  if (text === '') return { opening: 'There was no message to work on.', work: 'Nothing was done.' }
  const message = readTaskMessage(text)
  if (message) return toldOfTask(message, results)
  const [request, material] = dividedAtInput(text)
  const onMaterial = material === '' ? null : `I went through the input, which begins with ${quoted(material)}.`
  if (request.endsWith('?')) {
    const question = shortened(request.slice(lastSentenceAt(request)), LONGEST_REQUEST)
    const work = onMaterial ?? `It turns on ${topicsTold(request)}, and your words are all I have to go by.`
    return { opening: `You want to know: "${question}"`, work }
  }
  const instruction = instructionIn(request)
  if (instruction !== null) {
    const told = firstSentence(lowered(instruction), LONGEST_REQUEST)
    const work = onMaterial ?? `I kept to the points it names: ${topicsTold(told.replace(/^\S+/, ''))}.`
    return { opening: `I was asked to ${told}.`, work }
  }
  const own = lastParagraph(instructions)
  const work = own === '' ? 'It calls for nothing in particular.' : `I applied my instructions to it: ${quoted(own)}.`
  return { opening: `I have read your message, ${quoted(request, LONGEST_REQUEST)}.`, work: onMaterial ?? work }
}

function toldOfEvent(objectId: string, instructions: string): Told {
  return {
    opening: `The object ${shortened(objectId, LONGEST_MATERIAL)} has changed, and I followed my instructions for it.`,
    work: instructions === '' ? 'They call for nothing.' : `They are ${quoted(instructions, LONGEST_REQUEST)}.`,
  }
}

function toldOfPart(text: string, earlier: readonly string[]): Told {
  const [part, whole] = dividedAt(text, `\n\n${GIVEN}`)
  const wanted = firstSentence(part, LONGEST_REQUEST)
  const names = listed([...new Set(earlier)], MOST_NAMED)
  return {
    opening: isVerb(wanted) ? `I was asked to ${lowered(wanted)}.` : `My part of the task was this: ${wanted}.`,
    work: `It is about ${topicsTold(withoutVerb(whole || part))}, and the words of the task are all there was to go by.`,
    ...(names === '' ? {} : { ending: `I built on what ${names} had done.` }),
  }
}

/** A part of a plan says so in its description (offline-decisions.ts). */
const PART = 'Do this part of a larger task: '

function toldOfTask(message: TaskMessage, results: readonly ToldResult[]): Told {
  if (message.stuck) return toldOfStuck(message.stuck, results)
  const { title, description, earlier, advisers } = message
  const named = quoted(title, LONGEST_REQUEST)
  const failures = results.filter((result) => result.isError).length
  const parts = [
    failures > 0 ? `I worked on the task ${named}, and not all went well.` : `The task ${named} is done.`,
    ...(earlier.length === 0
      ? []
      : [
          `I built on ${listed(
            earlier.map((each) => quoted(each)),
            3,
          )}.`,
        ]),
    ...(advisers.length === 0 ? [] : [`I went by the answer of ${listed([...new Set(advisers)], 3)}.`]),
  ]
  return { opening: parts.join(' '), work: workTold(title, description) }
}

function workTold(title: string, description: string): string {
  if (description.startsWith(PART)) {
    return `It is one part of a larger task, and I kept to its points: ${topicsTold(description.slice(PART.length))}.`
  }
  const first = firstSentence(description, LONGEST_REQUEST)
  if (first === '') return `It is about ${topicsTold(title)}.`
  return isVerb(first) ? `It called for this: ${lowered(first)}.` : `It begins with this: ${first}.`
}

/** The answer to a subordinate that is stuck is shown to it at its next attempt. */
function toldOfStuck({ agent, task, error }: NonNullable<TaskMessage['stuck']>, results: readonly ToldResult[]): Told {
  const who = shortened(agent, LONGEST_MATERIAL)
  const hasHelped = results.some((result) => !result.isError)
  return {
    opening: `I looked at what keeps ${who} from the task ${quoted(task, LONGEST_REQUEST)}.`,
    work: `The error was ${quoted(error, LONGEST_REQUEST)}.`,
    ending: hasHelped
      ? 'The way should be free now: try it again.'
      : 'Find the cause of the error, and go another way.',
  }
}

const withoutVerb = (text: string): string => (isVerb(text) ? text.replace(/^\s*\S+/, '') : text)

const topicsTold = (text: string): string => listed(topicsOf(text, MOST_TOPICS), MOST_TOPICS) || 'a few words'

/** Functions of flows set the material of a request apart. */
function dividedAtInput(text: string): [request: string, material: string] {
  const [request, material] = dividedAt(text, '\n<input>\n')
  return [request, material.replace('\n</input>', '')]
}

function dividedAt(text: string, words: string): [before: string, after: string] {
  const at = text.indexOf(words)
  return at === -1 ? [text, ''] : [text.slice(0, at).trim(), text.slice(at + words.length)]
}

const MOST_RESULTS = 10
const LONGEST_RESULTS = 240

function resultsTold(results: readonly ToldResult[]): string {
  const shown = results.slice(0, MOST_RESULTS)
  const most = Math.max(40, Math.floor(LONGEST_RESULTS / shown.length))
  const told = shown.map(({ name, text, isError }) => {
    const read = withoutClosing(text.slice(0, LONGEST_READ))
    const found = isError ? null : namesIn(read)
    if (found !== null)
      return `${name} gave ${found.length} ${found.length === 1 ? 'item' : 'items'}${inBrackets(found)}.`
    return `${name} ${isError ? 'failed with' : 'gave'} ${quoted(read, most)}.`
  })
  const more = results.length - shown.length
  return more > 0 ? `${told.join(' ')} There are ${more} more results.` : told.join(' ')
}

const MOST_NAMED = 3

const inBrackets = (names: readonly string[]): string =>
  names.length === 0
    ? ''
    : ` (${listed(
        names.map((name) => quoted(name)),
        MOST_NAMED,
      )})`

/** The titles or names of the items that a tool listed; null if its result is no list of items with names. */
function namesIn(text: string): string[] | null {
  const value: unknown = text.startsWith('{') || text.startsWith('[') ? parsed(text) : null
  const list = Array.isArray(value) ? value : Object.values(value ?? {}).find(Array.isArray)
  if (list === undefined) return null
  const names = list.flatMap((each: unknown) => nameOf(each) ?? [])
  return names.length === list.length ? names : null
}

function nameOf(thing: unknown): string | null {
  const inner = fieldOf(thing, 'properties')
  const fields = [thing, inner].flatMap((each) => [fieldOf(each, 'title'), fieldOf(each, 'name')])
  const name = [...fields, fieldOf(thing, 'key')].find((each) => typeof each === 'string')
  return typeof name === 'string' ? name : null
}

const fieldOf = (thing: unknown, field: string): unknown =>
  thing !== null && typeof thing === 'object' ? Object.entries(thing).find(([key]) => key === field)?.[1] : undefined

/** A text in quotation marks, without the stop at its end. */
const quoted = (text: string, most = LONGEST_MATERIAL): string => `"${shortened(text, most).replace(/[.!]$/, '')}"`

/** Only the first of several sentences of a request is told, but the last one is its question. */
function lastSentenceAt(request: string): number {
  const place = Math.max(...['. ', '! ', '? ', '\n', ': '].map((stop) => request.lastIndexOf(stop, request.length - 2)))
  return place + 1
}

/** A step of an agent is the last paragraph of its instructions. */
const lastParagraph = (instructions: string): string =>
  instructions.slice(Math.max(instructions.lastIndexOf('\n\n'), instructions.length - LONGEST_READ, 0)).trim()
