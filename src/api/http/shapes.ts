// Shapes that many routes share. Path ids are plain strings: the lookup answers a malformed id like an unknown one.
import { z } from 'zod'
import { notFound } from '../../kernel/errors.ts'
import { unlessMissing } from '../../kernel/explain-issue.ts'
import { isId } from '../../kernel/id.ts'
import { errorSchema } from './errors.ts'

export const pathId = z.string().meta({ format: 'uuid' })
export const projectParams = z.strictObject({ id: pathId })

/** A number of a query, in plain digits: 0x10, 1e2 and " 5" are refused. */
export function wholeNumber({ most }: { most: number }) {
  const number = z
    .int({ error: unlessMissing(`must be a whole number from 1 to ${most}, in digits`) })
    .min(1)
    .max(most)
  return z.preprocess((text) => (typeof text === 'string' && /^\d{1,9}$/.test(text) ? Number(text) : text), number)
}

export const listQuery = z.strictObject({
  limit: wholeNumber({ most: 200 }).default(50).meta({ type: 'integer', minimum: 1, maximum: 200 }),
  cursor: z.string().min(1).max(200).optional(),
})

/** The body of routes that take none: absent, or an empty object. */
export const emptyBody = z.strictObject({}).nullish()
export const emptyQuery = z.strictObject({})

export const nothing = z.null().meta({ description: 'Done. The answer has no body.' })

/** The success by its status, and the error envelope for every other status. */
export const answers = <Status extends 200 | 201 | 202 | 204, Schema extends z.ZodType>(
  status: Status,
  schema: Schema,
) => ({ [status]: schema, default: errorSchema }) as { [Key in Status]: Schema } & { default: typeof errorSchema } // computed key

export function requireId(id: string, what: string): string {
  if (!isId(id)) throw notFound(what)
  return id
}
