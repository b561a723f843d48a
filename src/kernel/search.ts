// The search over a project: the text that is sought, and the things that are found.
import { z } from 'zod'
import { idField, instantField } from './fields.ts'

export const searchKinds = ['agent', 'run', 'flow', 'flow_run', 'object', 'task'] as const
export type SearchKind = (typeof searchKinds)[number]

export const searchHitSchema = z.strictObject({
  kind: z.enum(searchKinds),
  id: idField,
  title: z
    .string()
    .describe('A name: of the agent, of the agent of a run, of the flow, the key or title of an object.'),
  detail: z.string().nullable().describe('One line: a role, the beginning of an input or a description, a type.'),
  status: z.string().nullable(),
  at: instantField.describe('The time of the creation; of an object that of its last change.'),
})
export type SearchHit = z.infer<typeof searchHitSchema>

export const searchAnswerSchema = z.strictObject({
  q: z.string(),
  items: z
    .array(searchHitSchema)
    .describe('Best first: equal to the text, beginning with it, having it, having its words; of equals the newest.'),
  incomplete: z.array(z.enum(searchKinds)).describe('The kinds for which the time of the search was not enough.'),
})
export type SearchAnswer = z.infer<typeof searchAnswerSchema>

export interface Sought {
  /** As it was sent, without the spaces around it. */
  exact: string
  /** In lower case, with single spaces. */
  text: string
  /** Patterns for LIKE, one for each word; wildcards in the words are literal. */
  patterns: string[]
  /** The lowest and the highest id that begin like the text; null if no id does. */
  ids: { from: string; to: string } | null
}

export interface RankedHit extends SearchHit {
  /**
   * 0: the text is the name, the input or the id · 1: the name, the input or the id begins with it · 2: the name has it ·
   * 3: another text has it · 4: the texts have its words.
   */
  rank: number
}

const MOST_WORDS = 8
/** Ids begin with their time: eight letters stand for about a minute. */
const SHORTEST_ID = 8

/** Null if there is nothing to look for. */
export function readSought(q: string): Sought | null {
  const exact = q.trim()
  const text = exact.toLowerCase().replace(/\s+/g, ' ')
  if (text === '') return null
  const patterns = text
    .split(' ')
    .slice(0, MOST_WORDS)
    .map((word) => `%${word.replace(/[\\%_]/g, '\\$&')}%`)
  return { exact, text, patterns, ids: idsFrom(text) }
}

function idsFrom(text: string): Sought['ids'] {
  const digits = text.replaceAll('-', '')
  if (!/^[0-9a-f]+$/.test(digits) || digits.length < SHORTEST_ID || digits.length > 32) return null
  if (text !== digits && !dashed(digits.padEnd(32, '0')).startsWith(text)) return null
  return { from: dashed(digits.padEnd(32, '0')), to: dashed(digits.padEnd(32, 'f')) }
}

const dashed = (digits: string): string => digits.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
