// Finds the thing that somebody means: by its id, by its name, or by the first letters of its id. A reference that fits
// several things is never guessed.
import { didYouMean } from '../kernel/nearest.ts'
import { CommandFailure, exitCodes } from './exit-codes.ts'
import { beginsWith, idBeginning, shortIdsOf } from './short-id.ts'
import { visibleLine } from './visible-text.ts'

export interface Nameable<Thing> {
  thing: Thing
  id: string
  /** The names that stand for the thing. */
  names: readonly string[]
  /** A text whose words stand for the thing too, if nothing has that name. */
  text?: string
  /** The rest of its line in a list of candidates. */
  label: string
}

/** `what` is the noun of the thing, as in "agent". */
export function findOne<Thing>(what: string, reference: string, candidates: readonly Nameable<Thing>[]): Thing {
  const found = matchesOf(reference, candidates)
  if (found.length > 1) throw ambiguous(what, reference, found)
  if (found[0]) return found[0].thing
  const names = candidates.flatMap((candidate) => candidate.names)
  throw unknownThing(what, reference, didYouMean(reference, names))
}

function matchesOf<Thing>(reference: string, candidates: readonly Nameable<Thing>[]): Nameable<Thing>[] {
  const whole = candidates.filter(({ id }) => id === reference.toLowerCase())
  if (whole.length > 0) return whole
  const beginning = idBeginning(reference)
  const byId = beginning === null ? [] : candidates.filter(({ id }) => beginsWith(id, beginning))
  const found = [...new Set([...matchesByName(reference, candidates), ...byId])]
  if (found.length > 0 || reference.trim().length < FEWEST_LETTERS) return found
  return candidates.filter(({ text }) => text?.toLowerCase().includes(reference.toLowerCase()))
}

/** Case counts only if two names differ by nothing else. */
export function matchesByName<Thing>(reference: string, candidates: readonly Nameable<Thing>[]): Nameable<Thing>[] {
  const exact = candidates.filter(({ names }) => names.includes(reference))
  if (exact.length > 0) return exact
  const lower = reference.toLowerCase()
  return candidates.filter(({ names }) => names.some((name) => name.toLowerCase() === lower))
}

/** Shorter words stand in too many texts. */
const FEWEST_LETTERS = 3

export const unknownThing = (what: string, reference: string, guess = ''): CommandFailure =>
  new CommandFailure(exitCodes.misused, `There is no ${what} "${reference}".${guess}`, { code: 'NOT_FOUND' })

const MOST_SHOWN = 10

export function ambiguous<Thing>(what: string, reference: string, found: readonly Nameable<Thing>[]): CommandFailure {
  const short = shortIdsOf(found.map(({ id }) => id))
  const lines = found.slice(0, MOST_SHOWN).map(({ id, label }) => `${short(id)}  ${visibleLine(label)}`)
  const rest = found.length - lines.length
  const message = `"${reference}" means ${found.length} ${plural(what)}. Choose one by the letters of its id:`
  return new CommandFailure(exitCodes.misused, message, {
    lines: rest > 0 ? [...lines, `and ${rest} more`] : lines,
    code: 'AMBIGUOUS',
    details: { candidates: found.map(({ id }) => id) },
  })
}

const plural = (what: string): string => `${what}s`
