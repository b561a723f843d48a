import type { FastifyContextConfig, FastifySchema } from 'fastify'
import type { Access } from './auth.ts'

type Flags = Pick<FastifyContextConfig, 'isHeavy' | 'showsRuns' | 'unlimited'>

/** Gives the function that makes the options of a noun's routes: the callers, a sentence for people, and the schemas. */
export const routesOf =
  (noun: string) =>
  <Given extends FastifySchema & Flags>(access: Access, summary: string, given: Given) => {
    const { isHeavy = false, showsRuns = false, unlimited = false, ...schema } = given
    return { config: { access, isHeavy, showsRuns, unlimited }, schema: { tags: [noun], summary, ...schema } }
  }
