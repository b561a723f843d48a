// The calls that took effect, in words for people and for models.
import type { MadeCall } from '../journal/finished-calls.ts'
import { cutText } from '../kernel/cut-text.ts'

const MAX_VALUE = 2_000
const MIN_VALUE = 100
const MAX_TEXT = 20_000

/**
 * One line a call: the tool, its arguments, its result, its idempotency key and its time. The values of many calls are
 * shortened, so that every call has its line.
 */
export function linesOf(calls: readonly MadeCall[]): string {
  const long = linesWith(calls, MAX_VALUE)
  if (long.length <= MAX_TEXT) return long
  return linesWith(calls, Math.max(MIN_VALUE, Math.min(MAX_VALUE, Math.floor(MAX_TEXT / calls.length / 2))))
}

const linesWith = (calls: readonly MadeCall[], maxValue: number): string =>
  calls
    .map(
      ({ tool, args, result, key, at, is_finished: isFinished }) =>
        `- ${tool} ${shortJson(args, maxValue)} → ${isFinished ? shortJson(result, maxValue) : 'outcome unknown'} (${at.toISOString()}, idempotency key ${key})`,
    )
    .join('\n')

/** Paragraphs about the calls of the work so far; empty if it has made none. */
export function effectsParagraph(calls: readonly MadeCall[]): string {
  const finished = calls.filter((call) => call.is_finished)
  const unknown = calls.filter((call) => !call.is_finished)
  return [
    finished.length > 0 ? `These calls have been made and stand:\n${linesOf(finished)}` : null,
    unknown.length > 0 ? `Nobody knows whether these calls took effect:\n${linesOf(unknown)}` : null,
  ]
    .filter((text) => text !== null)
    .join('\n\n')
}

/** The calls as the metadata of a task shows them. */
export const asMetadata = (calls: readonly MadeCall[]): Record<string, unknown>[] =>
  calls.map(({ tool, args, result, key, is_finished, at }) => ({
    ...{ tool, args, result, key, is_finished, at: at.toISOString() },
  }))

const shortJson = (value: unknown, maxLength: number): string =>
  cutText(JSON.stringify(value) ?? 'null', maxLength, '…')
