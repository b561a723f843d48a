import { z } from 'zod'
import { unlessMissing } from './explain-issue.ts'
import { LONGEST_MS } from './limits.ts'

const BLANK = 'must not be blank'

/** A text that is more than spaces. An empty one is told so once. */
export const filledText = (longest: number) =>
  z.string().min(1, { error: BLANK, abort: true }).max(longest).regex(/\S/, BLANK)

/** A name people read. */
export const nameField = filledText(200).regex(/^[^\p{Cc}]*$/u, 'must not hold control characters')

export const NOT_AN_ID = 'must be an id, such as 0199a6f0-5f3e-7c1a-9d52-8f6b1e2c3d4e'

/** For answers that repeat an id as it was sent. */
export const idAsSent = z.uuid({ error: unlessMissing(NOT_AN_ID) })

/** Ids are also compared as text (seals, caches, sets), so each id is lower case from its arrival on. */
export const idField = idAsSent.toLowerCase()
/**
 * The first letters of an id, in lower case and without dashes. Ids begin with their time: with fewer letters than
 * eight, one request could read the ids of weeks.
 */
export const idBeginningField = z
  .string()
  .transform((text) => text.toLowerCase().replaceAll('-', ''))
  .refine((text) => /^[0-9a-f]{8,32}$/.test(text), 'must be the first letters of an id, 8 or more')
  .meta({ pattern: '^[0-9a-fA-F-]{8,36}$' })

export const instantField = z.iso.datetime()

const isYearOfFourDigits = (ms: number): boolean => ms >= Date.parse('0000-01-01') && ms < Date.UTC(10_000, 0)
const NOT_AN_INSTANT = 'must be an instant, such as 2026-01-31T09:30:00Z'

/** An instant by which a list is narrowed. Its year in UTC has four digits, so that it can be told again. */
export const instantFilter = z.iso
  .datetime({ offset: true, error: unlessMissing(NOT_AN_INSTANT) })
  .refine((text) => isYearOfFourDigits(Date.parse(text)), NOT_AN_INSTANT)

/** Any JSON object. Its owner decides on its contents; NUL, depth and size were checked on arrival. */
export const jsonObject = z.record(z.string(), z.unknown())

export const durationField = z.int().min(0).max(LONGEST_MS)

export const emailField = z.email().max(254)

export const pageOf = <Item extends z.ZodType>(item: Item) =>
  z.strictObject({ items: z.array(item), next_cursor: z.string().nullable() })

export interface Page<Item> {
  items: Item[]
  next_cursor: string | null
}
