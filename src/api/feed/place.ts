// The id of an event in the feed: the reader's place, in a form that every process over the same database understands.
import { invalidRequest } from '../../kernel/errors.ts'
import type { Seen } from './seen.ts'

export interface FeedPlace {
  /** The database. Numbers of transactions say nothing about another one, such as one that a backup was restored into. */
  database: string
  /** Milliseconds by the database's clock. */
  at: number
  seen: Seen
}

/** The contract promises five minutes, counted from the instant at which the id was sent. */
export const HOLDS_MS = 5.5 * 60_000

/** An id stays short if many transactions are open: the changes of some of them may be told twice then. */
const MOST_OPEN = 100

export function idOf({ database, at, seen: { before, except } }: FeedPlace): string {
  const [first = before] = except
  const seen = except.length > MOST_OPEN ? { before: first, except: [] } : { before, except }
  const numbers = [Math.round(at), seen.before, ...seen.except.map((each) => seen.before - each)]
  return [database, ...numbers.map((number) => number.toString(36))].join('-')
}

/** Throws INVALID_REQUEST for a text that cannot be an id. */
export function readId(text: unknown): FeedPlace {
  if (typeof text !== 'string' || !/^[0-9a-f]{8}(-[0-9a-z]{1,10}){2,}$/.test(text)) {
    throw invalidRequest('Last-Event-ID must be the id of an event of this stream.')
  }
  const [database = '', ...numbers] = text.split('-')
  const [at = 0, before = 0, ...back] = numbers.map((number) => Number.parseInt(number, 36))
  const except = new Set(back.map((each) => before - each).filter((each) => each > 0 && each < before))
  return { database, at, seen: { before, except: [...except].toSorted((a, b) => a - b) } }
}

/** True if a reader can go on from the place; otherwise it reads the lists again. */
export function holds(place: FeedPlace, now: FeedPlace): boolean {
  return place.database === now.database && now.at - place.at <= HOLDS_MS && place.seen.before <= now.seen.before
}
