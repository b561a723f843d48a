// The cases of a new eval, as JSON that a person writes.
import { errorText } from '../../../../src/kernel/error-text.ts'
import type { EvalInput } from '../../../../src/kernel/eval.ts'

type Cases = EvalInput['cases']

export type Read = { cases: Cases; problem: null } | { cases: null; problem: string }

export const EXAMPLE = JSON.stringify(
  [
    { task: 'Compare rain with snow.', expect: { status: 'DONE', route: ['research_agent', 'transform_agent'] } },
    { task: 'Ask a person whether we ship on Friday.', expect: { status: 'ESCALATE' } },
  ],
  null,
  2,
)

const EXPECTATIONS: readonly string[] = ['status', 'contains', 'route', 'max_steps']
const STATUSES: readonly unknown[] = ['DONE', 'ESCALATE', 'FAILED']

/** Finds the mistakes that people make most; the API checks the rest. */
export function readCases(text: string): Read {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    return refused(`This is no JSON: ${errorText(error)}`)
  }
  if (!Array.isArray(value)) return refused('The cases must be a list: [ … ].')
  if (value.length === 0) return refused('There must be at least one case.')
  for (const [place, each] of value.entries()) {
    const problem = problemOf(each)
    if (problem) return refused(`Case ${place + 1} ${problem}`)
  }
  return { cases: value as Cases, problem: null } // checked above, and by the API
}

const refused = (problem: string): Read => ({ cases: null, problem })

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function problemOf(value: unknown): string | null {
  if (!isObject(value)) return 'must be an object with a task.'
  if (typeof value.run_id === 'string') {
    return Object.keys(value).length === 1 ? null : 'names a run, so it can have nothing else.'
  }
  if (typeof value.task !== 'string' || value.task.trim() === '') return 'has no task.'
  const unknown = Object.keys(value).find((name) => name !== 'task' && name !== 'expect')
  if (unknown !== undefined) return `has the unknown field "${unknown}".`
  if (value.expect === undefined) return null
  if (!isObject(value.expect)) return 'has an expectation that is no object.'
  const strange = Object.keys(value.expect).find((name) => !EXPECTATIONS.includes(name))
  if (strange !== undefined) return `expects "${strange}"; known are ${EXPECTATIONS.join(', ')}.`
  const { status } = value.expect
  return status === undefined || STATUSES.includes(status)
    ? null
    : `expects a status that is not ${STATUSES.join(', ')}.`
}

export interface Draft {
  task: string
  status: string | null
  contains: string
  route: string
}

/** The text with one case more. Null if the text is no list that a case can be added to. */
export function addCase(text: string, added: Cases[number] | Draft): string | null {
  const read = text.trim() === '' ? [] : readCases(text).cases
  if (read === null) return null
  return JSON.stringify([...read, 'contains' in added ? caseOf(added) : added], null, 2)
}

function caseOf({ task, status, contains, route }: Draft): object {
  const names = route.split(/[\s,→>]+/).filter((name) => name !== '')
  const expect = {
    ...(status && { status }),
    ...(contains !== '' && { contains }),
    ...(names.length > 0 && { route: names }),
  }
  return { task, ...(Object.keys(expect).length > 0 && { expect }) }
}
