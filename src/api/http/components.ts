// The schemas of the OpenAPI document. A zod schema that is a noun of the API is a named component. A component whose
// input differs from its output, because fields have defaults, is two components: `ModelChoice` as it is answered, and
// `ModelChoiceInput` as it may be sent.
import { z } from 'zod'

export type ShownSchema = Record<string, unknown>
type Direction = 'input' | 'output'

export interface Components {
  show(schema: z.ZodType, direction: Direction): ShownSchema
  /** The document with all components that its schemas refer to. Called once, after the last schema was shown. */
  complete<Document extends { components?: object }>(document: Document): Document
}

type Named = Readonly<Record<string, z.ZodType>>

export interface Nouns {
  named: Named
  /**
   * Unions whose members only the server knows, as input, by the name of a noun. The document shows the union instead
   * of the noun's schema, which leaves the value open.
   */
  unions: Readonly<Record<string, Named>>
}

// While routes are read, nobody knows yet which inputs differ from their outputs, so inputs have a place of their own.
const PLACES = { output: '#/components/schemas/', input: '#/components/inputs/' }

export function createComponents({ named, unions }: Nouns): Components {
  const metadata = registryOf(named)
  const found = { input: new Map<string, ShownSchema>(), output: new Map<string, ShownSchema>() }

  function show(schema: z.ZodType, direction: Direction): ShownSchema {
    const {
      $schema: _,
      $defs = {},
      ...shown
    } = z.toJSONSchema(schema, {
      io: direction,
      unrepresentable: 'any',
      metadata,
      override: ({ jsonSchema }) => {
        if (direction === 'input') tellDefault(jsonSchema)
      },
    })
    for (const [name, each] of Object.entries($defs)) keep(name, placed(each, direction), direction)
    return placed(shown, direction)
  }

  function keep(name: string, schema: ShownSchema, direction: Direction): void {
    const known = found[direction].get(name)
    if (known && !isSame(known, schema)) throw new Error(`two schemas of the API are called ${name}`)
    found[direction].set(name, schema)
  }

  function putTogether(union: string, members: Named): void {
    for (const [name, schema] of Object.entries(members)) {
      const shown = show(schema, 'input')
      if (shown.$ref !== PLACES.input + name) keep(name, shown, 'input')
    }
    const refs = Object.keys(members).map((name) => ({ $ref: PLACES.input + name }))
    found.input.set(union, { anyOf: refs })
    found.output.delete(union)
  }

  return {
    show,
    complete(document) {
      for (const [name, members] of Object.entries(unions)) {
        if (found.input.has(name) || found.output.has(name)) putTogether(name, members)
      }
      const split = differing(found.input, found.output)
      const schemas = Object.fromEntries(found.output)
      for (const [name, schema] of found.input) {
        const shown = split.has(name) ? inputName(name) : name
        if (split.has(name) && (found.output.has(shown) || found.input.has(shown))) {
          throw new Error(`two schemas of the API are called ${shown}`)
        }
        schemas[shown] = schema
      }
      const whole = { ...document, components: { ...document.components, schemas } }
      return withRefs(whole, (ref) => settled(ref, split))
    },
  }
}

/** The descriptions that schemas have, and the names of the nouns. */
function registryOf(named: Named): typeof z.globalRegistry {
  const names = new Map(Object.entries(named).map(([name, schema]): [z.core.$ZodType, string] => [schema, name]))
  const registry = z.registry<z.core.GlobalMeta>()
  registry.get = (schema) => {
    const id = names.get(schema)
    const known = z.globalRegistry.get(schema)
    return (id === undefined ? known : { ...known, id }) as ReturnType<typeof registry.get> // typed for one schema
  }
  return registry
}

/** Generators take a field with the keyword `default` for one that must be sent, so the description says the default. */
function tellDefault(schema: ShownSchema): void {
  if (!('default' in schema)) return
  const { default: value, description } = schema
  const said = `Default: ${JSON.stringify(value)}.`
  delete schema.default
  schema.description = typeof description === 'string' ? `${description} ${said}` : said
}

const inputName = (name: string): string => `${name}Input`

/** The names of components whose input is not their output, by themselves or through a component they refer to. */
function differing(inputs: ReadonlyMap<string, ShownSchema>, outputs: ReadonlyMap<string, ShownSchema>): Set<string> {
  const alike = (schema: ShownSchema): ShownSchema => withRefs(schema, (ref) => settled(ref, new Set()))
  const split = new Set<string>()
  for (const [name, input] of inputs) {
    const output = outputs.get(name)
    if (output && !isSame(alike(input), alike(output))) split.add(name)
  }
  for (let before = -1; before < split.size; ) {
    before = split.size
    for (const [name, input] of inputs) {
      const isSplit = refsIn(input).some((ref) => split.has(ref.slice(PLACES.input.length)))
      if (isSplit && outputs.has(name)) split.add(name)
    }
  }
  return split
}

function settled(ref: string, split: ReadonlySet<string>): string {
  if (!ref.startsWith(PLACES.input)) return ref
  const name = ref.slice(PLACES.input.length)
  return PLACES.output + (split.has(name) ? inputName(name) : name)
}

const placed = (schema: object, direction: Direction): ShownSchema =>
  withRefs(schema as ShownSchema, (ref) => ref.replace('#/$defs/', PLACES[direction])) // a JSON Schema is an object

const isSame = (one: ShownSchema, other: ShownSchema): boolean => JSON.stringify(one) === JSON.stringify(other)

function refsIn(schema: ShownSchema): string[] {
  const refs: string[] = []
  withRefs(schema, (ref) => {
    refs.push(ref)
    return ref
  })
  return refs
}

/** A copy in which each reference is replaced. */
function withRefs<Value extends object>(value: Value, change: (ref: string) => string): Value {
  const copy: unknown = JSON.parse(JSON.stringify(value), (key, inner: unknown) =>
    key === '$ref' && typeof inner === 'string' ? change(inner) : inner,
  )
  return copy as Value // the same shape with other strings
}
