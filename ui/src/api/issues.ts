// The problems that the API found in a request, in words for people: at the field that they are about, else as sentences.
import { errorText } from '../../../src/kernel/error-text.ts'
import type { Problem } from '../../../src/kernel/explain-issue.ts'
import { isPredicate, sentenceAt, withStop } from '../../../src/kernel/sentence-at.ts'

/** As in the message of the API: the first few problems are enough to go on. */
const MOST_TOLD = 3

/** "Must be at least 1." */
export const asSentence = (message: string): string => withStop(message.charAt(0).toUpperCase() + message.slice(1))

/** For a field that shows in seconds what the API takes in milliseconds. */
export const inSeconds = (message: string): string =>
  message.replace(/(at least|at most) (\d+)/, (_, how: string, ms: string) => `${how} ${Number(ms) / 1_000} s`)

/** The message of a refusal: `body.alert_factor must be at least 1.` is "Alert factor must be at least 1." */
export function plainMessage(message: string, details: unknown): string {
  const issues = issuesIn(details)
  return issues.length === 0 ? message : issues.slice(0, MOST_TOLD).map(sentenceOf).join(' ')
}

/** The problems by the path of their field, each as a sentence. */
export const issuesOf = (error: unknown): Map<string, string> =>
  new Map(issuesIn(detailsOf(error)).map(({ path, message }) => [path, asSentence(message)]))

export interface Refusal {
  /** By the path of the field. */
  fields: Record<string, string>
  /** The problems that no field can show. */
  rest: string | null
}

/** Divides a refusal among the fields of a form. The problem of an item stands beside its list. */
export function refusalOf(error: unknown, fields: readonly string[]): Refusal {
  const found: Refusal = { fields: {}, rest: null }
  const others: Problem[] = []
  for (const issue of placedIn(error, fields)) {
    const field = fields.find((name) => issue.path === name || issue.path.startsWith(`${name}.`))
    if (field === undefined) others.push(issue)
    else found.fields[field] ??= asSentence(issue.message)
  }
  if (others.length > 0) found.rest = others.slice(0, MOST_TOLD).map(sentenceOf).join(' ')
  return found
}

/** Some refusals name their field only in the message: `doom_loop_stop must not be …`, `flow: there is no …`. */
function placedIn(error: unknown, fields: readonly string[]): Problem[] {
  const issues = issuesIn(detailsOf(error))
  if (issues.length > 0) return issues
  const message = errorText(error)
  const path = fields.find((name) => message.startsWith(`${name} `) || message.startsWith(`${name}: `))
  return [
    path === undefined ? { path: '', message } : { path, message: message.slice(path.length).replace(/^:? /, '') },
  ]
}

export function issuesIn(details: unknown): Problem[] {
  const issues = (details as { issues?: unknown } | null)?.issues // as in the answer of a body that does not fit
  return Array.isArray(issues) ? issues.filter(isIssue) : []
}

/** An ApiError has details; this file does not import it, because the client needs this file. */
const detailsOf = (error: unknown): unknown => (error instanceof Error && 'details' in error ? error.details : null)

function isIssue(value: unknown): value is Problem {
  if (typeof value !== 'object' || value === null || !('path' in value) || !('message' in value)) return false
  return typeof value.path === 'string' && typeof value.message === 'string'
}

/** "Alert factor must be at least 1." */
export function sentenceOf({ path, message }: Problem): string {
  if (path !== '') return sentenceAt(nameOf(path), message)
  return isPredicate(message) ? sentenceAt('The request', message) : message
}

/** `reaction_config.objectTypes.0` is "Reaction config, object types 1". */
function nameOf(path: string): string {
  const words = path
    .replaceAll(/\.(\d+)/g, (_, place) => ` ${Number(place) + 1}`)
    .replaceAll('.', ', ')
    .replaceAll('_', ' ')
    .replaceAll(/([a-z])([A-Z])/g, (_, before: string, after: string) => `${before} ${after.toLowerCase()}`)
  return words.charAt(0).toUpperCase() + words.slice(1)
}
