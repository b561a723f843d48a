// Layouts: components that a page draws, as data. This union is the answer of `POST /v1/genui/layout` and the schema a
// model is asked with. A layout that fits it can only show text and offer one of the actions below.
import { z } from 'zod'
import { idField } from './fields.ts'
import { isMore, jsonSize } from './json-size.ts'
import { hasHtml, isSafeMarkdown } from './safe-markup.ts'

export const LONGEST_TEXT = 2_000
export const LONGEST_LABEL = 200
/** The limit of a Markdown text, and of a value before or after a change. */
export const LONGEST_VALUE = 20_000
const MOST_ROWS = 200
export const MOST_FIELDS = 200
const MOST_COLUMNS = 12
const MOST_OPTIONS = 50
const MOST_SERIES = 10
const MOST_IN_GROUP = 50
/** The most components of a layout, including those within groups. */
export const MOST_COMPONENTS = 200
const LARGEST_LAYOUT = { bytes: 2 * 1_048_576, nodes: 50_000 }

const words = (most: number) => z.string().max(most).refine(not(hasHtml), 'must not hold HTML')
const label = words(LONGEST_LABEL)
/** A value is shown letter by letter, never as markup. */
const value = z.string().max(LONGEST_VALUE)

const componentId = z.string().regex(/^[A-Za-z][A-Za-z0-9_-]{0,63}$/, 'must begin with a letter: A-Z, a-z, 0-9, _, -')
const tone = z.enum(['neutral', 'good', 'warning', 'bad'])

export const openTargets = ['task', 'run', 'eval', 'object'] as const
const target = { target: z.enum(openTargets), id: idField }

const actionSchema = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('approve'), task_id: idField }),
  z.strictObject({
    type: z.literal('reject'),
    task_id: idField,
    from: componentId.optional().describe('The input whose value is the reason.'),
  }),
  z.strictObject({
    type: z.literal('answer'),
    task_id: idField,
    from: componentId.describe('The input or select whose value is the answer.'),
  }),
  z.strictObject({ type: z.literal('open'), ...target }),
])

const text = z.strictObject({
  type: z.literal('text'),
  id: componentId,
  value: words(LONGEST_TEXT),
  style: z.enum(['title', 'heading', 'body', 'note']).optional(),
  tone: tone.optional(),
})
const input = z.strictObject({
  type: z.literal('input'),
  id: componentId,
  label,
  placeholder: label.optional(),
  multiline: z.boolean().optional(),
  required: z.boolean().optional(),
})
const select = z.strictObject({
  type: z.literal('select'),
  id: componentId,
  label,
  options: z
    .array(z.strictObject({ value: z.string().max(LONGEST_LABEL), label }))
    .min(1)
    .max(MOST_OPTIONS)
    .refine((all) => new Set(all.map((option) => option.value)).size === all.length, 'must have different values'),
  required: z.boolean().optional(),
})
const button = z.strictObject({
  type: z.literal('button'),
  id: componentId,
  label: label.min(1),
  action: actionSchema,
  emphasis: z.enum(['primary', 'danger', 'plain']).optional(),
})

const cell = z.union([z.string().max(LONGEST_TEXT), z.number(), z.boolean(), z.null()])
export type Cell = z.infer<typeof cell>
const table = z
  .strictObject({
    type: z.literal('table'),
    id: componentId,
    title: label.optional(),
    columns: z
      .array(z.strictObject({ label, align: z.enum(['left', 'right']).optional() }))
      .min(1)
      .max(MOST_COLUMNS),
    rows: z
      .array(
        z.strictObject({
          cells: z.array(cell).max(MOST_COLUMNS),
          open: z.strictObject(target).optional().describe('The page that the row leads to.'),
        }),
      )
      .max(MOST_ROWS),
    note: words(LONGEST_TEXT).optional(),
  })
  .refine(({ columns, rows }) => rows.every(({ cells }) => cells.length === columns.length), {
    path: ['rows'],
    message: 'must have a cell for each column',
  })

const diff = z.strictObject({
  type: z.literal('diff'),
  id: componentId,
  title: label.optional(),
  changes: z
    .array(
      z.strictObject({
        field: z.string().max(LONGEST_LABEL),
        kind: z.enum(['added', 'removed', 'changed']),
        before: value.nullable(),
        after: value.nullable(),
      }),
    )
    .max(MOST_FIELDS),
  unchanged: z.int().min(0).optional().describe('How many further fields stay as they are.'),
  is_whole: z.boolean().optional().describe('False if the change is too large to be shown as a whole.'),
})

const chart = z
  .strictObject({
    type: z.literal('chart'),
    id: componentId,
    title: label.optional(),
    kind: z.enum(['bar', 'line']),
    unit: z.string().max(40).refine(not(hasHtml), 'must not hold HTML').optional(),
    categories: z.array(label).max(MOST_ROWS),
    series: z.array(z.strictObject({ label, values: z.array(z.number().nullable()).max(MOST_ROWS) })).max(MOST_SERIES),
  })
  .refine(({ categories, series }) => series.every(({ values }) => values.length === categories.length), {
    path: ['series'],
    message: 'must have a value for each category',
  })

const markdown = z.strictObject({
  type: z.literal('markdown'),
  id: componentId,
  value: z
    .string()
    .max(LONGEST_VALUE)
    .refine(isSafeMarkdown, 'must not hold HTML, images, or links to anything but http(s), / and #'),
})

const leaves = [text, input, select, button, table, diff, chart, markdown] as const
const leafSchema = z.discriminatedUnion('type', leaves)
export type LeafComponent = z.infer<typeof leafSchema>

/** A group holds no groups, so that the depth of a layout is bounded and every provider accepts its schema. */
const group = z.strictObject({
  type: z.literal('group'),
  id: componentId,
  title: label.optional(),
  components: z.array(leafSchema).max(MOST_IN_GROUP),
})

export const componentSchema = z.discriminatedUnion('type', [...leaves, group])
export type Component = z.infer<typeof componentSchema>
export type ComponentType = Component['type']
export type OfType<Type extends ComponentType> = Extract<Component, { type: Type }>

export const layoutSchema = z
  .strictObject({ components: z.array(componentSchema).min(1).max(MOST_COMPONENTS) })
  .superRefine((layout, issues) => {
    const problem = layoutProblem(layout)
    if (problem) issues.addIssue({ code: 'custom', message: problem, path: ['components'] })
  })
export type Layout = { components: Component[] }

/** All components in the order in which they are shown, a group before those within it. */
export const componentsOf = ({ components }: Layout): Component[] =>
  components.flatMap((each) => (each.type === 'group' ? [each, ...each.components] : [each]))

function layoutProblem(layout: Layout): string | null {
  const all = componentsOf(layout)
  if (all.length > MOST_COMPONENTS) return `has more than ${MOST_COMPONENTS} components`
  const types = new Map<string, ComponentType>()
  for (const { id, type } of all) {
    if (types.has(id)) return `has two components called ${id}`
    types.set(id, type)
  }
  for (const each of all) {
    if (each.type !== 'button' || !('from' in each.action) || each.action.from === undefined) continue
    const type = types.get(each.action.from)
    if (type !== 'input' && type !== 'select') return `${each.id} takes its value from ${each.action.from}: no input`
  }
  return isMore(jsonSize(layout, LARGEST_LAYOUT), LARGEST_LAYOUT) ? 'is too large' : null
}

const scenarios = ['generic', 'approval', 'run_summary', 'eval_comparison'] as const
export type Scenario = (typeof scenarios)[number]

export const scenarioOf = (name: string): Scenario => scenarios.find((known) => known === name) ?? 'generic'

const field = z.strictObject({
  label: z.string().min(1).max(LONGEST_LABEL),
  options: z.array(z.string().min(1).max(LONGEST_LABEL)).min(1).max(MOST_OPTIONS).optional(),
})

export const layoutContext = z
  .object({
    scenario: z
      .string()
      .max(LONGEST_LABEL)
      .describe(`One of ${scenarios.join(', ')}; any other is generic.`),
    task_id: idField.optional().describe('For approval: a suggestion or a question.'),
    run_id: idField.optional().describe('For run_summary.'),
    eval_id: idField.optional().describe('For eval_comparison.'),
    title: z.string().max(LONGEST_TEXT).optional().describe('For generic: the title.'),
    fields: z.array(field).max(MOST_IN_GROUP).optional().describe('For generic: the values that the page asks for.'),
  })
  .catchall(z.unknown())
  .describe('Anything else is a fact that a generic layout shows.')
export type LayoutContext = z.infer<typeof layoutContext>

export const layoutRequest = z.strictObject({ context: layoutContext })

function not(test: (text: string) => boolean): (text: string) => boolean {
  return (given) => !test(given)
}
