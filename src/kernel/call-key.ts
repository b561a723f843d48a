// The key of a tool call. The same call (tool, arguments, occurrence) within one scope has the same key, whichever run
// makes it, so that a retry above the call is one effect.
import { canonicalJson } from './canonical-json.ts'
import { idFrom } from './id.ts'
import { isRecord } from './is-record.ts'

/** These arguments steer Muster and never reach a tool, so they are no part of the call. */
const CONTROL_ARGUMENTS: ReadonlySet<string> = new Set(['reasoning', 'apply', 'muster_apply'])

/** The number of announced calls by identity, since the history began. */
export type CallCounts = Map<string, number>

export interface IdentifiedCall {
  name: string
  args: unknown
}

/** Equal for calls of the same tool with equal arguments; the order of keys and the form of numbers do not matter. */
export function identityOf({ name, args }: IdentifiedCall): string {
  const own = isRecord(args)
    ? Object.fromEntries(Object.entries(args).filter(([key]) => !CONTROL_ARGUMENTS.has(key)))
    : args
  return idFrom(`${name}\n${canonicalJson(own)}`)
}

/** `occurrence` counts the calls with this identity since the history began, from 1. */
export const callKey = (scope: string, identity: string, occurrence: number): string =>
  idFrom(`${scope}\n${identity}\n${occurrence}`)

/** Counts the call. Returns its occurrence. */
export function countCall(counts: CallCounts, identity: string): number {
  const occurrence = (counts.get(identity) ?? 0) + 1
  counts.set(identity, occurrence)
  return occurrence
}

/** The scope of the calls of a task's attempts. */
export const taskScope = (taskId: string): string => `task:${taskId}`
