// The arguments with which the offline model calls a tool, taken from the message that asks for it.
import type { LanguageModelV4FunctionTool } from '@ai-sdk/provider'
import { type Fill, plainFill, type SchemaNode, schemaInstance } from './schema-instance.ts'

const URL_IN_TEXT = /https?:\/\/[^\s"'<>)\]}]+/
const DELEGATION =
  /\b(?:spawn|delegate\b.{0,200}?\bto|hand\s+over\s+to)\s+(?:(?:the|an?)\s+)?(?:agent\s+)?(?:(?:called|named)\s+)?["'`]?([\w.-]*\w)["'`]?(?:\s+agent\b)?(.*)/is

/** No more of a message is read than this, because every rule searches all of it. */
export const LONGEST_MESSAGE = 100_000
/** The longest text of an argument that is prose. */
const LONGEST_TOPIC = 10_000
/** Words that hold other characters than letters are looked for one by one. */
const MOST_ODD_WORDS = 100

/** A message as the rules of the offline model see it. Each part is found once, and only when it is asked for. */
export interface Message {
  text: string
  hasWord(word: string): boolean
  /** Every place at which one of these words stands by itself; `at` is the end of the word. */
  placesOf(words: readonly string[]): { word: string; at: number }[]
  url(): string | null
  delegation(): { agent: string; errand: string } | null
}

export function readMessage(whole: string): Message {
  const text = whole.slice(0, LONGEST_MESSAGE)
  const words = once(() => new Set(Array.from(text.matchAll(WORD), ([word]) => word.toLowerCase())))
  const url = once(() => withoutStops(URL_IN_TEXT.exec(text)?.[0] ?? ''))
  const delegation = once(() => DELEGATION.exec(text))
  let odd = 0
  return {
    text,
    hasWord: (word) => {
      if (ONE_WORD.test(word)) return words().has(word.toLowerCase())
      odd++
      return odd <= MOST_ODD_WORDS && oddPlaces(text, word).length > 0
    },
    placesOf: (wanted) => {
      const plain = new Map(wanted.filter((word) => ONE_WORD.test(word)).map((word) => [word.toLowerCase(), word]))
      const places = wanted
        .filter((word) => !ONE_WORD.test(word))
        .slice(0, MOST_ODD_WORDS)
        .flatMap((word) => oddPlaces(text, word).map((at) => ({ word, at })))
      for (const { 0: found, index } of text.matchAll(WORD)) {
        const word = plain.get(found.toLowerCase())
        if (word !== undefined) places.push({ word, at: index + found.length })
      }
      return places.sort((a, b) => a.at - b.at)
    },
    url: () => url() || null,
    delegation: () => {
      const [, agent, errand] = delegation() ?? []
      return agent === undefined ? null : { agent, errand: errand ?? '' }
    },
  }
}

const WORD = /[\w-]+/g
const ONE_WORD = /^[\w-]+$/

function oddPlaces(text: string, word: string): number[] {
  const pattern = new RegExp(`(?<![\\w-])${word.replace(/[^\w]/g, '\\$&')}(?![\\w-])`, 'gi')
  return Array.from(text.matchAll(pattern), (match) => match.index + match[0].length)
}

function once<Value>(find: () => Value): () => Value {
  let found: { value: Value } | null = null
  return () => {
    found ??= { value: find() }
    return found.value
  }
}

/** A sentence may end with the URL. */
function withoutStops(url: string): string {
  let end = url.length
  while (end > 0 && '.,;:!?'.includes(url.charAt(end - 1))) end -= 1
  return url.slice(0, end)
}

/** A JSON object right behind the tool's name, else the schema's required properties filled from the text. */
export function argumentsFor(tool: LanguageModelV4FunctionTool, message: Message, behindName: string | null): unknown {
  const given = behindName === null ? null : leadingObject(behindName)
  if (given) return given
  // A JSON Schema is a plain object here; its boolean form is no schema of a tool.
  const schema = tool.inputSchema as SchemaNode
  return schemaInstance(schema, fillFrom(message, behindName))
}

function fillFrom(message: Message, behindName: string | null): Fill {
  const near = (behindName ?? message.text).slice(0, LONGEST_TOPIC)
  const delegation = message.delegation()
  const topic = trimmed((delegation?.errand ?? near).slice(0, LONGEST_TOPIC)) || message.text.slice(0, LONGEST_TOPIC)
  const numbers = near.matchAll(/-?\d+(?:\.\d+)?/g)
  return {
    text(name, schema) {
      if (/ur[il]$|href|link/i.test(name) || schema.format === 'uri') {
        return message.url() ?? plainFill.text(name, schema)
      }
      if (/agent|assignee|^name$|^to$/i.test(name) && delegation) return delegation.agent
      // A date or an id cannot be made of prose.
      if (typeof schema.format === 'string') return plainFill.text(name, schema)
      return topic
    },
    number: () => {
      const next = numbers.next()
      return next.done ? null : Number(next.value[0])
    },
    choice: (values) => values.find((value) => typeof value === 'string' && message.hasWord(value)) ?? values[0],
  }
}

function trimmed(text: string): string {
  return text.replace(/^[\s:,;.-]*(?:(?:to|for|with|about|on|and)\s+)?/i, '').trim()
}

const BEFORE_OBJECT = /[\s:(`]*(?:with\s+)?(?=\{)/iy

export function hasObjectAt(text: string, at: number): boolean {
  BEFORE_OBJECT.lastIndex = at
  return BEFORE_OBJECT.test(text)
}

function leadingObject(text: string): Record<string, unknown> | null {
  BEFORE_OBJECT.lastIndex = 0
  const start = BEFORE_OBJECT.exec(text)?.[0].length
  if (start === undefined) return null
  let depth = 0
  let isQuoted = false
  for (let at = start; at < text.length; at += 1) {
    const character = text[at]
    if (isQuoted && character === '\\') at += 1
    else if (character === '"') isQuoted = !isQuoted
    else if (!isQuoted && character === '{') depth += 1
    else if (!isQuoted && character === '}') depth -= 1
    if (depth === 0) return parsed(text.slice(start, at + 1))
  }
  return null
}

export function parsed(text: string): Record<string, unknown> | null {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
