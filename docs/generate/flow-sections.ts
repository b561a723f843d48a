import { builtInDescriptions } from '../../src/flows/definition/built-in-functions.ts'
import { builtInPatterns } from '../../src/flows/machine/built-in-patterns.ts'
import type { Pattern } from '../../src/flows/machine/pattern.ts'
import { flowTemplates } from '../../src/flows/templates/templates.ts'
import { cell, json } from './markdown.ts'

export async function flowSections(): Promise<Record<string, string>> {
  return { overview: overview(), patterns: patterns(), functions: functions(), templates: templates() }
}

function overview(): string {
  const rows = builtInPatterns.all.map(({ type, suits }) => `| [\`${type}\`](#${type}) | ${suits?.summary ?? ''} |`)
  return ['| pattern | for |', '|---|---|', ...rows].join('\n')
}

const patterns = (): string => builtInPatterns.all.map(patternPart).join('\n\n')

function patternPart({ type, guide }: Pattern): string {
  if (!guide) throw new Error(`the pattern ${type} has no guide`)
  const { text, fields, example } = guide
  const rows = Object.entries(fields).map(([name, meaning]) => `| \`${name}\` | ${cell(meaning)} |`)
  return [`### ${type}`, text, ['| field | meaning |', '|---|---|', ...rows].join('\n'), json(example)].join('\n\n')
}

function functions(): string {
  const rows = Object.entries(builtInDescriptions).map(([name, what]) => `| \`${name}\` | ${cell(what)} |`)
  return ['| function | arguments → result |', '|---|---|', ...rows].join('\n')
}

function templates(): string {
  const rows = flowTemplates.map(
    ({ name, pattern, description }) => `| \`${name}\` | ${pattern} | ${cell(description)} |`,
  )
  return ['| template | pattern | purpose |', '|---|---|---|', ...rows].join('\n')
}
