// The source of an agent or a flow. Requests may switch an entry of an app module on and off; the code decides the
// rest.
import { z } from 'zod'
import { conflict } from './errors.ts'

export const sourceField = z
  .enum(['api', 'app'])
  .describe('api: made and changed by requests. app: follows the code of an app module; requests change enabled alone.')
type Source = z.infer<typeof sourceField>

type Noun = 'agent' | 'flow'
interface Named {
  name: string
  source: Source
}

/** Refuses a request that changes more than `enabled`. */
export async function requireOpenToRequests(
  noun: Noun,
  { name, source }: Named,
  fields: readonly string[],
  isInCode: () => Promise<boolean>,
): Promise<void> {
  if (source === 'api' || fields.every((field) => field === 'enabled')) return
  throw conflict(
    (await isInCode())
      ? `The ${noun} ${name} follows the code of the app module. Change the code and start Muster again; requests change enabled alone.`
      : `The ${noun} ${name} was made by an app module, whose code no longer has it. Delete it, or put it back into the code; requests change enabled alone.`,
  )
}

/** An entry that the code no longer has may be deleted: no code is left to change. */
export function requireDeletable(noun: Noun, { name, source }: Named, isInCode: boolean): void {
  if (source === 'api' || !isInCode) return
  throw conflict(
    `The ${noun} ${name} follows the code of the app module. Take it out of the code and start Muster again: it is disabled then, and may be deleted.`,
  )
}
