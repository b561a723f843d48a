import type { FastifySerializerCompiler } from 'fastify/types/schema.js'
import { type $ZodType, safeParse } from 'zod/v4/core'

/** Production only writes answers as JSON, because their types fit. With `check` every answer is parsed first. */
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
