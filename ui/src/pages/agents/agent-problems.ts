// Puts the problems that the server names beside the fields that they are about.
import { errorText } from '../../../../src/kernel/error-text.ts'
import type { Problem } from '../../../../src/kernel/explain-issue.ts'
import { asSentence, inSeconds, issuesIn, sentenceOf } from '../../api/issues.ts'

export interface Problems {
  /** By the path of the field, as in the definition: `model.provider`, `steps.0.prompt`. */
  fields: Record<string, string>
  /** The problems that no field can show. */
  others: string[]
}

/** Lists whose items have no fields of their own: the problem of an item is shown beside the list. */
const LISTS = ['tools', 'competencies', 'reaction_config.objectTypes', 'reaction_config.events']
const LIST_OF_TYPES = 'capabilities.allowedObjectTypes'
const WHOLE: Readonly<Record<string, string>> = {
  model: 'model.name',
  reaction_config: 'reaction_config.objectTypes',
  capabilities: LIST_OF_TYPES,
}

/** `isShown` says whether the form shows the field of this path now. */
export function problemsIn(error: unknown, isShown: (path: string) => boolean): Problems {
  const problems: Problems = { fields: {}, others: [] }
  for (const { path, message } of toldBy(error)) {
    const field = fieldAt(path)
    const said = path === 'default_timeout' ? inSeconds(message) : message
    if (field !== '' && isShown(field)) problems.fields[field] ??= asSentence(said)
    else problems.others.push(path === '' ? asSentence(said) : sentenceOf({ path, message: said }))
  }
  return problems
}

/** The shape of an ApiError. */
interface Refusal extends Error {
  status: number
  details: unknown
}
const isRefusal = (error: unknown): error is Refusal =>
  error instanceof Error && 'status' in error && 'details' in error

function toldBy(error: unknown): Problem[] {
  if (!isRefusal(error)) return [{ path: '', message: errorText(error) }]
  const { details, message } = error
  const issues = issuesIn(details)
  if (issues.length > 0) return issues
  if (/^There is an agent called/.test(message)) return [{ path: 'name', message }]
  return [placed(message)]
}

/** `cron_schedule: the hour is 24.`, `senior_id would make …`, `steps are missing: …` begin with the path. */
function placed(message: string): Problem {
  const [, path = '', rest = ''] =
    /^((?:[a-z]+_[a-z_]+|tools|steps|flow|model|timezone)(?:\.\w+)*):? (.+)$/s.exec(message) ?? []
  return path === '' ? { path, message } : { path, message: rest }
}

/** The problem of a schedule or a time zone, as the preview of times tells it. */
export const timingProblem = (error: unknown): Problem | null =>
  isRefusal(error) && error.status === 400 ? asField(placed(error.message)) : null

const asField = ({ path, message }: Problem): Problem => ({ path, message: asSentence(message) })

function fieldAt(path: string): string {
  const list = [...LISTS, LIST_OF_TYPES].find((name) => path === name || path.startsWith(`${name}.`))
  if (list !== undefined) return list
  const ofStep = /^(steps\.\d+)(?:\.tools.*)$/.exec(path)
  if (ofStep) return `${ofStep[1]}.tools`
  return Object.hasOwn(WHOLE, path) ? (WHOLE[path] ?? path) : path
}
