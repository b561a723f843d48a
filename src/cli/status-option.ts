import { didYouMean } from '../kernel/nearest.ts'
import type { Given } from './command.ts'
import { misused } from './exit-codes.ts'
import { textOption } from './read-input.ts'

/** The value of --status, which must be one of the statuses. */
export function statusOption(given: Given, statuses: readonly string[]): string | undefined {
  const status = textOption(given, 'status')
  if (status === null) return undefined
  if (statuses.includes(status)) return status
  throw misused(`--status takes ${statuses.join(', ')}, not "${status}".${didYouMean(status, statuses)}`)
}
