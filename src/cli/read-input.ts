import type { CommandContext, Given } from './command.ts'
import { misused } from './exit-codes.ts'

/** `-` is the standard input, `@path` a file, and every other text is itself. */
export async function readText({ readStdin, readFile }: CommandContext, value: string): Promise<string> {
  if (value === '-') return readStdin()
  if (!value.startsWith('@')) return value
  try {
    return await readFile(value.slice(1))
  } catch (error) {
    throw misused(`The file ${value.slice(1)} cannot be read (${error instanceof Error ? error.message : error}).`)
  }
}

/** Text that begins like an object or a list is JSON and must be valid; any other text is a text. */
export function parseInput(text: string, flag: string): unknown {
  if (!/^\s*[[{]/.test(text)) return text
  try {
    return JSON.parse(text)
  } catch (error) {
    throw misused(`${flag} is not valid JSON (${error instanceof Error ? error.message : error}).`)
  }
}

export function textOption({ options }: Given, name: string): string | null {
  const value = options[name]
  return typeof value === 'string' ? value : null
}

export function numberOption(given: Given, name: string, flag: string, least = 1): number | null {
  const text = textOption(given, name)
  return text === null ? null : wholeNumberFrom(text, flag, least)
}

export function wholeNumberFrom(text: string, flag: string, least = 1): number {
  if (!/^\d{1,15}$/.test(text) || Number(text) < least) throw misused(`${flag} takes a whole number, not "${text}".`)
  return Number(text)
}
