import type { Db } from '../db/pool.ts'
import { didYouMean } from '../kernel/nearest.ts'
import { fitsTool } from '../kernel/rights.ts'
import type { ToolRegistry } from './registry.ts'

/** Each entry of require_approval must fit a tool that is given; with `given` null, a tool that exists. */
export async function approvalProblem(
  registry: Pick<ToolRegistry, 'check'>,
  db: Db,
  projectId: string,
  { given, approved }: { given: readonly string[] | null; approved: readonly string[] },
): Promise<string | null> {
  const fits = (pattern: string): boolean =>
    given === null || given.some((name) => fitsTool(pattern, name) || fitsTool(name, pattern))
  const other = approved.find((pattern) => !fits(pattern))
  if (other !== undefined)
    return `require_approval: "${other}" matches no tool of this agent.${didYouMean(other, given ?? [])}`
  const unknown = await registry.check(db, projectId, approved)
  return unknown === null ? null : `require_approval: ${unknown}`
}
