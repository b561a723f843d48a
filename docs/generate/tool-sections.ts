import { createBuiltInTools } from '../../src/bin/built-in-tools.ts'
import { createEgress } from '../../src/egress/egress.ts'
import type { ListedTool } from '../../src/kernel/listed-tool.ts'
import { createToolRegistry } from '../../src/tools/registry.ts'
import { cell } from './markdown.ts'

export async function toolSections(): Promise<Record<string, string>> {
  const egress = createEgress({ allow: [] })
  // The tools are described and never called: nobody asks the pool for anything.
  const builtIns = createBuiltInTools({ pool: null as never, egress })
  const { items: tools } = await createToolRegistry({ builtIns, appTools: [], mcp: null }).list('', null)
  await egress.close()
  return { overview: overview(tools), tools: tools.map(toolPart).join('\n\n') }
}

function overview(tools: readonly ListedTool[]): string {
  const rows = tools.map(
    ({ name, effect, description }) => `| [\`${name}\`](#${name}) | ${effect} | ${cell(firstSentence(description))} |`,
  )
  return ['| tool | effect | purpose |', '|---|---|---|', ...rows].join('\n')
}

const firstSentence = (text: string): string => /^[\s\S]*?[.](?=\s|$)/.exec(text)?.[0] ?? text

function toolPart({ name, effect, description, input_schema }: ListedTool): string {
  const quoted = description
    .split('\n')
    .map((line) => `> ${line}`.trimEnd())
    .join('\n')
  return [`### ${name}`, `Effect: ${effect}. The model reads:`, quoted, fieldTable(input_schema)].join('\n\n')
}

function fieldTable(schema: Schema): string {
  const fields = Object.entries((schema.properties ?? {}) as Record<string, Schema>) // as JSON Schema says
  if (fields.length === 0) return 'It takes no arguments.'
  const required = new Set(Array.isArray(schema.required) ? schema.required : [])
  const rows = fields.map(([name, field]) => {
    const note = [
      required.has(name) ? 'required' : '',
      'default' in field ? `default ${JSON.stringify(field.default)}` : '',
    ]
    const about = [note.filter(Boolean).join(', '), String(field.description ?? '')].filter(Boolean).join('. ')
    return `| \`${name}\` | ${cell(kindOf(field))} | ${cell(about)} |`
  })
  return ['| argument | type | |', '|---|---|---|', ...rows].join('\n')
}

type Schema = Readonly<Record<string, unknown>>

/** The type of a field in a word or two. */
function kindOf(schema: Schema): string {
  if (Array.isArray(schema.enum)) return schema.enum.map((value) => `\`${JSON.stringify(value)}\``).join(' or ')
  if ('const' in schema) return `\`${JSON.stringify(schema.const)}\``
  const ways = schema.anyOf ?? schema.oneOf
  if (Array.isArray(ways)) return ways.map((way: Schema) => kindOf(way)).join(' or ')
  if (schema.type === 'array') return `list of ${kindOf((schema.items ?? {}) as Schema)}` // as JSON Schema says
  return typeof schema.type === 'string' ? schema.type : 'any JSON'
}
