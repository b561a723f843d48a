// How numbers, durations and texts are written.
import { cutText } from '../../../src/kernel/cut-text.ts'
import { isRecord } from '../../../src/kernel/is-record.ts'
import type { Run } from '../../../src/kernel/run.ts'

/** 1m 51s, 340 ms, 2h 5m */
export function duration(ms: number | null): string {
  if (ms === null) return '–'
  if (ms < 1_000) return `${Math.min(999, Math.round(ms))} ms`
  const seconds = ms / 1_000
  if (seconds < 10) return `${Math.min(9.9, seconds).toFixed(1)}s`
  if (seconds < 60) return `${Math.floor(seconds)}s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return `${minutes}m ${Math.floor(seconds % 60)}s`
  const hours = Math.floor(minutes / 60)
  return hours < 48 ? `${hours}h ${minutes % 60}m` : `${Math.floor(hours / 24)}d ${hours % 24}h`
}

/** 812, 3.7k, 3.74M */
export function tokens(count: number): string {
  if (count < 1_000) return String(count)
  if (count < 999_500) return `${(count / 1_000).toFixed(count < 99_950 ? 1 : 0)}k`
  return `${(count / 1_000_000).toFixed(2)}M`
}

/** $0.0042, $11.59; a dash if the model has no price. */
export function cost(usd: number | null): string {
  if (usd === null) return '–'
  if (usd === 0) return '$0'
  if (usd < 0.000_001) return '< $0.000001'
  return usd < 0.1 ? `$${usd.toPrecision(2)}` : `$${usd.toFixed(2)}`
}

/** 2 min ago, in 3 h */
export function ago(instant: string, now: number): string {
  const ms = now - Date.parse(instant)
  const text = roughly(Math.abs(ms))
  if (text === null) return ms < 0 ? 'in a moment' : 'just now'
  return ms < 0 ? `in ${text}` : `${text} ago`
}

function roughly(ms: number): string | null {
  const minutes = ms / 60_000
  if (ms < 5_000) return null
  if (minutes < 1) return `${Math.floor(ms / 1_000)} s`
  if (minutes < 60) return `${Math.floor(minutes)} min`
  if (minutes < 60 * 24) return `${Math.floor(minutes / 60)} h`
  return `${Math.floor(minutes / 60 / 24)} d`
}

/** The input of a run, in one line. A run of a schedule is given nothing but the time. */
export const inputLine = ({ input, trigger }: Pick<Run, 'input' | 'trigger'>, most?: number): string =>
  trigger.type === 'schedule' ? 'by its schedule' : fieldsLine(input ?? '', most)

/** A value in one line, for people who skim: the fields of an object are named, all else is as in `oneLine`. */
export function fieldsLine(value: unknown, most?: number): string {
  if (!isRecord(value)) return oneLine(value, most)
  return oneLine(
    Object.entries(value)
      .map(([name, each]) => `${name}: ${oneLine(each, most)}`)
      .join(', '),
    most,
  )
}

/** A value in one line: a text as it is, all else as JSON. */
export const oneLine = (value: unknown, most = 160): string => {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
  return cutText(text.replaceAll(/\s+/g, ' ').trim(), most, '…')
}
