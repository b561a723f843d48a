// The arguments with which the offline model calls a tool, taken from the message that asks for it.
import type { LanguageModelV4FunctionTool } from '@ai-sdk/provider'
import { type Fill, plainFill, type SchemaNode, schemaInstance } from './schema-instance.ts'

export const URL_IN_TEXT = /https?:\/\/[^\s"'<>)\]}]+/
export const DELEGATION =
  /\b(?:spawn|delegate\b.{0,200}?\bto|hand\s+over\s+to)\s+(?:(?:the|an?)\s+)?(?:agent\s+)?(?:(?:called|named)\s+)?["'`]?([\w.-]*\w)["'`]?(?:\s+agent\b)?(.*)/is

/** A JSON object right behind the tool's name, else the schema's required properties filled from the text. */
export function argumentsFor(tool: LanguageModelV4FunctionTool, message: string, behindName: string | null): unknown {
  const given = behindName === null ? null : leadingObject(behindName)
  if (given) return given
  // JSON Schema is a plain object; its boolean form is no schema of a tool.
  const schema = tool.inputSchema as SchemaNode
  return schemaInstance(schema, fillFrom(message, behindName))
}

function fillFrom(message: string, behindName: string | null): Fill {
  const [, agent, errand] = DELEGATION.exec(message) ?? []
  const topic = trimmed(errand ?? behindName ?? message) || message
  const numbers = [...(behindName ?? message).matchAll(/-?\d+(?:\.\d+)?/g)].map(Number)
  const url = URL_IN_TEXT.exec(message)?.[0].replace(/[.,;:!?]+$/, '')
  return {
    text(name, schema) {
      if (/ur[il]$|href|link/i.test(name) || schema.format === 'uri') return url ?? plainFill.text(name, schema)
      if (/agent|assignee|^name$|^to$/i.test(name) && agent !== undefined) return agent
      // A date or an id cannot be made of prose.
      if (typeof schema.format === 'string') return plainFill.text(name, schema)
      return topic
    },
    number: () => numbers.shift() ?? null,
    choice: (values) => values.find((value) => typeof value === 'string' && hasWord(message, value)) ?? values[0],
  }
}

function trimmed(text: string): string {
  return text.replace(/^[\s:,;.-]*(?:(?:to|for|with|about|on|and)\s+)?/i, '').trim()
}

export function hasWord(text: string, word: string): boolean {
  return wordsOf(text, word).length > 0
}

/** Where the word stands by itself, as the places behind it. */
export function wordsOf(text: string, word: string): number[] {
  const pattern = new RegExp(`(?<![\\w-])${word.replace(/[^\w]/g, '\\$&')}(?![\\w-])`, 'gi')
  return [...text.matchAll(pattern)].map((match) => match.index + match[0].length)
}

function leadingObject(text: string): Record<string, unknown> | null {
  const start = /^[\s:(`]*(?:with\s+)?(?=\{)/i.exec(text)?.[0].length
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
