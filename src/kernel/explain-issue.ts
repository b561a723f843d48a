// Says in helpful words why a value is refused. Zod's own words serve if there are no better ones.
import type { z } from 'zod'
import { cutText } from './cut-text.ts'
import { isRecord } from './is-record.ts'
import { didYouMean, withGuess } from './nearest.ts'

/** `path`: the field, as in `properties.name`. Empty: the whole. */
export interface Problem {
  path: string
  message: string
}

export const MISSING = 'is missing'
const MOST_NAMED = 5
const MOST_CHOICES = 20
const LONGEST_NAME = 60

/** For `safeParse(value, { error: explainIssue })`. A message that the schema itself has goes before these. */
export function explainIssue(issue: z.core.$ZodRawIssue): string | undefined {
  const { input } = issue
  switch (issue.code) {
    case 'unrecognized_keys':
      return unknownFields(issue.keys, input, knownFields(issue.inst))
    case 'invalid_value':
      return input === undefined ? MISSING : notAmong(input, issue.values)
    case 'invalid_type':
      return input === undefined ? MISSING : otherType(issue.expected, input)
    case 'too_small':
      return sized(issue.origin, issue.minimum, issue.exact ? 'exactly' : issue.inclusive ? 'at least' : 'more than')
    case 'too_big':
      return sized(issue.origin, issue.maximum, issue.exact ? 'exactly' : issue.inclusive ? 'at most' : 'less than')
    case 'not_multiple_of':
      return `must be a multiple of ${issue.divisor}`
    case 'invalid_format':
      return FORMATS[issue.format]
    case 'invalid_union': {
      if (input === undefined) return MISSING
      const { discriminator, options } = { options: undefined, ...issue }
      if (discriminator === undefined || !Array.isArray(options)) return undefined
      const chosen = isRecord(input) ? input[discriminator] : undefined
      return chosen === undefined ? MISSING : notAmong(chosen, options)
    }
    default:
      return undefined
  }
}

/** The message of a schema about a value that is there and does not fit. */
export const unlessMissing =
  (message: string) =>
  ({ input }: { input?: unknown }): string | undefined =>
    input === undefined ? undefined : message

/** The issues one by one, each with the path to its value. Of a union those with the member that comes closest. */
export const problemsOf = (issues: readonly z.core.$ZodIssue[]): Problem[] =>
  placedProblems(issues).map(({ path, message }) => ({ path: path.map(String).join('.'), message }))

/** The same with the paths as lists, for values whose keys are names that people choose. */
export const placedProblems = (issues: readonly z.core.$ZodIssue[]): PlacedProblem[] => issues.flatMap(problemsIn)

export interface PlacedProblem {
  path: PropertyKey[]
  message: string
}

function problemsIn(issue: z.core.$ZodIssue): PlacedProblem[] {
  const { path, message } = issue
  const own = [{ path, message: message.replace(/^Invalid input: /, '') }]
  if (issue.code === 'invalid_key') return issue.issues.flatMap(problemsIn).map((each) => ({ ...each, path }))
  if (issue.code !== 'invalid_union' || issue.errors.length === 0 || message === MISSING) return own
  const members = issue.errors.filter((issues) => !isOtherKind(issues))
  // The schema's own message says what all members take.
  if (members.length === 0 && message !== UNEXPLAINED) return own
  const near = members.length === 0 ? issue.errors : members
  const fewest = Math.min(...near.map((issues) => issues.length))
  const closest = near.filter((issues) => issues.length === fewest)
  const guessed = closest.filter((issues) => issues.some((each) => each.message.includes('Did you mean')))
  const [only, another] = guessed.length === 1 ? guessed : closest
  if (only && !another) return only.flatMap(problemsIn).map((each) => ({ ...each, path: [...path, ...each.path] }))
  const types = closest.map(([first]) =>
    first?.code === 'invalid_type' && first.path.length === 0 ? first.expected : null,
  )
  if (types.includes(null)) return own
  return [{ path, message: `must be ${types.map((type) => ARTICLES[type ?? ''] ?? type).join(' or ')}` }]
}

/** Zod's message about a union that says nothing itself. */
const UNEXPLAINED = 'Invalid input'

/** True: the member takes values of another kind, as a text for a number, or an object whose `type` is another one. */
const isOtherKind = (issues: readonly z.core.$ZodIssue[]): boolean =>
  issues.some((issue) => {
    if (issue.code === 'invalid_union' && issue.path.length === 0) return issue.errors.every(isOtherKind)
    if (issue.code === 'invalid_type') return issue.path.length === 0
    return issue.code === 'invalid_value' && issue.path.length === 1 && issue.path[0] === 'type'
  })

/** "must be a number, not a text" */
function otherType(expected: string, input: unknown): string | undefined {
  const wanted = ARTICLES[expected]
  if (wanted === undefined) return undefined
  const kind = input === null ? 'null' : Array.isArray(input) ? 'array' : typeof input
  const given = kind === 'number' ? undefined : ARTICLES[kind === 'boolean' ? '' : kind]
  return given === undefined || given === wanted ? `must be ${wanted}` : `must be ${wanted}, not ${given}`
}

/** "must be at least 1", "must have at most 200 characters" */
function sized(origin: string, bound: number | bigint, how: string): string | undefined {
  if (['number', 'int', 'bigint'].includes(origin)) return `must be ${how} ${bound}`
  const unit = UNITS[origin]
  if (unit === undefined) return undefined
  if (how === 'at least' && Number(bound) === 1) return 'must not be empty'
  return `must have ${how} ${bound} ${Number(bound) === 1 ? unit.one : unit.many}`
}

const UNITS: Readonly<Record<string, { one: string; many: string } | undefined>> = {
  string: { one: 'character', many: 'characters' },
  array: { one: 'item', many: 'items' },
  set: { one: 'item', many: 'items' },
  map: { one: 'entry', many: 'entries' },
}

const FORMATS: Readonly<Record<string, string | undefined>> = {
  email: 'must be an email address',
  url: 'must be a URL, such as https://example.com',
  datetime: 'must be a date and time, such as 2026-11-16T09:30:00Z',
  date: 'must be a day, such as 2026-11-16',
}

const ARTICLES: Readonly<Record<string, string | undefined>> = {
  string: 'a text',
  record: 'an object',
  object: 'an object',
  array: 'a list',
  int: 'a whole number',
  number: 'a number',
  boolean: 'true or false',
  null: 'null',
}

function unknownFields(keys: readonly string[], input: unknown, known: readonly string[]): string {
  // A field that is there already was not meant by another field.
  const open = known.filter((name) => !(isRecord(input) && Object.hasOwn(input, name)))
  const named = keys
    .slice(0, MOST_NAMED)
    .map((key) => `has no field "${cutText(key, LONGEST_NAME, '…')}".${didYouMean(key, open)}`)
  const more = keys.length > MOST_NAMED ? [`does not have ${keys.length - MOST_NAMED} more of the given fields.`] : []
  return [...named, ...more].join(' It ')
}

function knownFields(schema: z.core.$ZodType | z.core.$ZodCheck | undefined): string[] {
  const def: object = schema?._zod.def ?? {}
  return 'shape' in def && isRecord(def.shape) ? Object.keys(def.shape) : []
}

function notAmong(value: unknown, values: readonly unknown[]): string {
  const shown = values.slice(0, MOST_CHOICES).map((each) => JSON.stringify(each))
  const list = `${shown.join(', ')}${values.length > MOST_CHOICES ? ', …' : ''}`
  const names = values.filter((each) => typeof each === 'string')
  const guess = typeof value === 'string' ? didYouMean(value, names) : ''
  return withGuess(`must be ${values.length === 1 ? '' : 'one of '}${list}`, guess)
}
