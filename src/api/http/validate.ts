// Holds bodies, queries, headers and paths against the schema of their route, and names the problems.
import type { FastifySchemaCompiler } from 'fastify'
import type { z } from 'zod'
import { invalidRequest } from '../../kernel/errors.ts'
import { explainIssue, MISSING, type Problem, problemsOf } from '../../kernel/explain-issue.ts'
import { NOT_AN_ID } from '../../kernel/fields.ts'
import { sentenceAt } from '../../kernel/sentence-at.ts'

/** The addresses that list the ids for a field, by the name of the field. */
const LISTS: Readonly<Record<string, string | undefined>> = {
  flow_id: '/flows',
  flow_run_id: '/flow-runs',
  agent_id: '/agents',
  senior_id: '/agents',
  assigned_to: '/agents',
  run_id: '/runs',
  parent_run_id: '/runs',
  resume_run_id: '/runs',
  from_id: '/objects',
  to_id: '/objects',
  task_id: '/tasks',
  parent_task_id: '/tasks',
  ids: '/tasks',
  eval_id: '/evals',
}

/** People send names as ids: the message says where the ids are. */
function withList({ path, message }: Problem): Problem {
  const field =
    path
      .replace(/\.\d+$/, '')
      .split('.')
      .at(-1) ?? ''
  const list = message === NOT_AN_ID && Object.hasOwn(LISTS, field) ? LISTS[field] : undefined
  return { path, message: list === undefined ? message : `${message}. GET ${list} lists the ids.` }
}

const MOST_PROBLEMS = 20
/** The message of the answer tells the first few; its details tell more. */
const MOST_TOLD = 3

export const validatorCompiler: FastifySchemaCompiler<z.ZodType> =
  ({ schema, httpPart = 'request' }) =>
  (given) => {
    const part = httpPart === 'querystring' ? 'query' : httpPart
    const parsed = schema.safeParse(given, { error: explainIssue })
    if (parsed.success) return { value: parsed.data }
    // Fastify gives null if no body was sent.
    const isAbsent = given === null || given === undefined
    const issues = isAbsent
      ? [{ path: '', message: MISSING }]
      : problemsOf(parsed.error.issues).slice(0, MOST_PROBLEMS).map(withList)
    const sentences = issues
      .slice(0, MOST_TOLD)
      .map(({ path, message }) => sentenceAt(path === '' ? part : `${part}.${path}`, message))
    return { error: invalidRequest(sentences.join(' '), { issues }) }
  }
