// A form for any other purpose: the caller's title, facts and fields.
import type { Component, Layout, LeafComponent, openTargets } from '../kernel/genui.ts'
import { asCell, asLabel, asText, inWords } from './plain-text.ts'

export interface GenericFacts {
  title?: string | undefined
  fields?: readonly { label: string; options?: readonly string[] | undefined }[] | undefined
  /** Further facts from the caller, by name. */
  facts: Readonly<Record<string, unknown>>
  /** Rows of the project that the caller named; their existence was checked. */
  known: readonly { target: (typeof openTargets)[number]; id: string }[]
}

const MOST_FACTS = 100

export function showGeneric({ title, fields = [{ label: 'Your request' }], facts, known }: GenericFacts): Layout {
  const heading = asText(title ?? '').trim() || 'What is to be done?'
  const components: Component[] = [
    { type: 'text', id: 'title', value: heading, style: 'title' },
    ...showFacts(facts),
    ...fields.map(showField),
    ...known.map(
      ({ target, id }): LeafComponent => ({
        type: 'button',
        id: `open_${target}`,
        label: `Open the ${target}`,
        action: { type: 'open', target, id },
        emphasis: 'plain',
      }),
    ),
  ]
  return { components }
}

function showFacts(facts: GenericFacts['facts']): Component[] {
  const all = Object.entries(facts)
  if (all.length === 0) return []
  const rows = all.slice(0, MOST_FACTS).map(([name, value]) => ({ cells: [asCell(name), cellOf(value)] }))
  const note = all.length > rows.length ? { note: `${all.length - rows.length} more are not shown.` } : {}
  return [{ type: 'table', id: 'facts', columns: [{ label: 'Fact' }, { label: 'Value' }], rows, ...note }]
}

const cellOf = (value: unknown): string | number | boolean | null =>
  value === null || typeof value === 'boolean' || typeof value === 'number' ? value : asCell(inWords(value), 1_000)

function showField(
  { label, options }: { label: string; options?: readonly string[] | undefined },
  index: number,
): LeafComponent {
  const named = { id: `field_${index + 1}`, label: asLabel(label) }
  if (!options) return { type: 'input', ...named }
  const choices = [...new Set(options)].map((value) => ({ value, label: asLabel(value) }))
  return { type: 'select', ...named, options: choices }
}
