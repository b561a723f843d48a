import assert from 'node:assert/strict'
import { test } from 'node:test'
import { z } from 'zod'
import { explainIssue, problemsOf } from './explain-issue.ts'
import { durationField, emailField, instantField } from './fields.ts'

const said = (schema: z.ZodType, value: unknown): string[] => {
  const parsed = schema.safeParse(value, { error: explainIssue })
  return parsed.success ? [] : problemsOf(parsed.error.issues).map(({ message }) => message)
}

const CASES: [what: string, schema: z.ZodType, value: unknown, message: string][] = [
  ['a number below its least', z.number().min(1), 0, 'must be at least 1'],
  ['a number above its most', z.int().max(10), 11, 'must be at most 10'],
  ['a number that must be more', z.number().positive(), 0, 'must be more than 0'],
  ['a number that must be less', z.number().lt(2), 2, 'must be less than 2'],
  ['a fraction', z.int(), 1.5, 'must be a whole number'],
  ['a fraction of a duration', durationField, 0.5, 'must be a whole number'],
  ['no number', z.coerce.number(), 'x', 'must be a number'],
  ['a text for a number', z.number(), '1', 'must be a number, not a text'],
  ['a number for a text', z.string(), 1, 'must be a text'],
  ['a list for an object', z.strictObject({}), [], 'must be an object, not a list'],
  ['null for a list', z.array(z.string()), null, 'must be a list, not null'],
  ['a text for true or false', z.boolean(), 'yes', 'must be true or false, not a text'],
  ['true for a text', z.string(), true, 'must be a text'],
  ['an empty text', z.string().min(1), '', 'must not be empty'],
  ['a short text', z.string().min(8), 'x', 'must have at least 8 characters'],
  ['a long text', z.string().max(1), 'xx', 'must have at most 1 character'],
  ['a text of another length', z.string().length(3), 'x', 'must have exactly 3 characters'],
  ['an empty list', z.array(z.string()).min(1), [], 'must not be empty'],
  ['a long list', z.array(z.string()).max(1), ['a', 'b'], 'must have at most 1 item'],
  ['another multiple', z.number().multipleOf(5), 3, 'must be a multiple of 5'],
  ['no email address', emailField, 'ada', 'must be an email address'],
  ['no URL', z.url(), 'x', 'must be a URL, such as https://example.com'],
  ['no instant', instantField, 'today', 'must be a date and time, such as 2026-11-16T09:30:00Z'],
  ['no day', z.iso.date(), 'today', 'must be a day, such as 2026-11-16'],
  ['nothing', z.number().min(1), undefined, 'is missing'],
  ['words of the schema', z.string().regex(/\d/, 'must hold a digit'), 'x', 'must hold a digit'],
]

for (const [what, schema, value, message] of CASES) {
  test(`${what}: ${message}`, () => assert.deepEqual(said(schema, value), [message]))
}
