import type { FastifySerializerCompiler } from 'fastify/types/schema.js'
import { type $ZodType, safeParse } from 'zod/v4/core'

/**
 * The types already hold answers to their schemas, so production only writes them as JSON. With `check` every answer is
 * parsed first, and an answer that does not fit is a bug.
 */
export function createSerializer(check: boolean): FastifySerializerCompiler<unknown> {
  if (!check) return () => (answer) => JSON.stringify(answer)
  return ({ schema, url, method }) =>
    (answer) => {
      const text = JSON.stringify(answer)
      const fits = safeParse(schema as $ZodType, JSON.parse(text)) // every response schema of ours is a zod schema
      if (!fits.success) throw new Error(`the answer of ${method} ${url} does not fit: ${fits.error.message}`)
      return text
    }
}
