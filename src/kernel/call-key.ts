// The key of a tool call. The same call (tool, arguments, occurrence) within one scope has the same key, whichever run
// makes it, so that a retry above the call is one effect.
import { canonicalJson } from './canonical-json.ts'
import { idFrom } from './id.ts'
import { isRecord } from './is-record.ts'
import type { ToolEffect } from './tool.ts'

/**
 * These arguments steer Muster and are not part of a change of the graph. Muster takes the ones that it added out of the
 * arguments of every other tool before the call is announced; a tool's own arguments of these names reach the tool.
 */
const CONTROL_ARGUMENTS: ReadonlySet<string> = new Set(['reasoning', 'apply', 'muster_apply'])

/** The occurrences of announced calls by identity, since the history began. */
export type CallCounts = Map<string, readonly number[]>

export interface IdentifiedCall {
  name: string
  args: unknown
  effect: ToolEffect | 'run'
}

/** Equal for calls of the same tool with equal arguments; the order of keys and the form of numbers do not matter. */
export function identityOf({ name, args, effect }: IdentifiedCall): string {
  const own = effect === 'run' ? withoutControl(args) : args
  return idFrom(`${name}\n${canonicalJson(own)}`)
}

export const withoutControl = (args: unknown): unknown =>
  isRecord(args) ? Object.fromEntries(Object.entries(args).filter(([key]) => !CONTROL_ARGUMENTS.has(key))) : args

/** `occurrence` counts the calls with this identity and a result since the history began, from 1. */
export const callKey = (scope: string, identity: string, occurrence: number): string =>
  idFrom(`${scope}\n${identity}\n${occurrence}`)

/** Counts the call. Returns its occurrence, from 1. */
export function countCall(counts: CallCounts, identity: string): number {
  const taken = counts.get(identity) ?? []
  const free = taken.findIndex((occurrence, place) => occurrence !== place + 1)
  const occurrence = (free === -1 ? taken.length : free) + 1
  counts.set(identity, taken.toSpliced(occurrence - 1, 0, occurrence))
  return occurrence
}

/** A call that got no result is no occurrence: the next call with this identity has its key. */
export function uncountCall(counts: CallCounts, identity: string, occurrence: number): void {
  counts.set(
    identity,
    (counts.get(identity) ?? []).filter((taken) => taken !== occurrence),
  )
}

/** The scope of the calls of a task's attempts. */
export const taskScope = (taskId: string): string => `task:${taskId}`
