// Building blocks of the schemas that check input.
import { z } from 'zod'

/** A name people read: not blank, no control characters, bounded. */
export const nameField = z
  .string()
  .min(1)
  .max(200)
  .regex(/^[^\p{Cc}]*$/u, 'must not hold control characters')
  .regex(/\S/, 'must not be blank')

/** Ids are compared as text, too (seals, caches, sets), so each is lower case from its arrival on. */
export const idField = z.uuid().toLowerCase()
export const instantField = z.iso.datetime()

/** Any JSON object. Its owner decides on its contents; NUL, depth and size were checked on arrival. */
export const jsonObject = z.record(z.string(), z.unknown())

export const durationField = z.int().min(0).max(2_147_483_647)

export const emailField = z.email().max(254)

export const pageOf = <Item extends z.ZodType>(item: Item) =>
  z.strictObject({ items: z.array(item), next_cursor: z.string().nullable() })

export interface Page<Item> {
  items: Item[]
  next_cursor: string | null
}
