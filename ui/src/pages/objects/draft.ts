// Properties while somebody edits them: as a form with one field per property, or as JSON.
import { errorText } from '../../../../src/kernel/error-text.ts'

export const fieldKinds = ['text', 'number', 'yes or no', 'JSON'] as const
export type FieldKind = (typeof fieldKinds)[number]

export interface Field {
  id: number
  name: string
  kind: FieldKind
  text: string
  /** The name of a stored property stays. */
  isNew: boolean
}

export interface Draft {
  mode: 'form' | 'json'
  fields: readonly Field[]
  /** In the mode json. */
  json: string
}

/** By the field: `name 3`, `value 3`, or `json`. */
export type Problems = ReadonlyMap<string, string>
type Properties = Record<string, unknown>
type ReadDraft = { properties: Properties } | { problems: Problems }

export const newDraft = (properties: Properties): Draft => ({
  mode: 'form',
  fields: Object.entries(properties).map(([name, value], id) => ({ id, name, isNew: false, ...fieldOf(value) })),
  json: '',
})

function fieldOf(value: unknown): Pick<Field, 'kind' | 'text'> {
  switch (typeof value) {
    case 'string':
      return { kind: 'text', text: value }
    case 'number':
      return { kind: 'number', text: String(value) }
    case 'boolean':
      return { kind: 'yes or no', text: String(value) }
    default:
      return { kind: 'JSON', text: JSON.stringify(value, null, 1) }
  }
}

export function readDraft(draft: Draft): ReadDraft {
  if (draft.mode === 'json') return readJson(draft.json)
  const problems = new Map<string, string>()
  const names = new Set<string>()
  const entries: [string, unknown][] = []
  for (const field of draft.fields) {
    if (field.name.trim() === '') problems.set(`name ${field.id}`, 'Give it a name.')
    else if (names.has(field.name)) problems.set(`name ${field.id}`, 'There is one of this name already.')
    names.add(field.name)
    const read = readValue(field)
    if ('problem' in read) problems.set(`value ${field.id}`, read.problem)
    else entries.push([field.name, read.value])
  }
  return problems.size > 0 ? { problems } : { properties: Object.fromEntries(entries) }
}

function readValue({ kind, text }: Field): { value: unknown } | { problem: string } {
  switch (kind) {
    case 'text':
      return { value: text }
    case 'yes or no':
      return { value: text === 'true' }
    case 'number': {
      const value = Number(text)
      return text.trim() === '' || !Number.isFinite(value) ? { problem: 'This is no number.' } : { value }
    }
    case 'JSON':
      try {
        return { value: JSON.parse(text) as unknown }
      } catch (error) {
        return { problem: `This is no JSON: ${errorText(error)}` }
      }
  }
}

function readJson(text: string): ReadDraft {
  const problem = (message: string): ReadDraft => ({ problems: new Map([['json', message]]) })
  const read = readValue({ kind: 'JSON', text, id: 0, name: '', isNew: false })
  if ('problem' in read) return problem(read.problem)
  const { value } = read
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return problem('This must be a JSON object.')
  return { properties: value as Properties } // checked above
}

/** The draft in the other mode; a draft that cannot be read stays as it is. */
export function inMode(draft: Draft, mode: Draft['mode'], stored: Properties): Draft | { problems: Problems } {
  if (mode === draft.mode) return draft
  const read = readDraft(draft)
  if ('problems' in read) return read
  if (mode === 'json') return { ...draft, mode, json: JSON.stringify(read.properties, null, 2) }
  const { fields } = newDraft(read.properties)
  return { mode, json: '', fields: fields.map((field) => ({ ...field, isNew: !Object.hasOwn(stored, field.name) })) }
}

export const addField = (draft: Draft): Draft => ({
  ...draft,
  fields: [...draft.fields, { id: nextId(draft), name: '', kind: 'text', text: '', isNew: true }],
})

const nextId = ({ fields }: Draft): number => Math.max(-1, ...fields.map(({ id }) => id)) + 1

export const changeField = (draft: Draft, id: number, change: Partial<Field>): Draft => ({
  ...draft,
  fields: draft.fields.map((field) => (field.id === id ? { ...field, ...change } : field)),
})

export const removeField = (draft: Draft, id: number): Draft => ({
  ...draft,
  fields: draft.fields.filter((field) => field.id !== id),
})

/** The problems that the API found, at the fields of the draft. Those of other fields are left out. */
export function problemsAt(draft: Draft, issues: ReadonlyMap<string, string>): Problems {
  return new Map(
    [...issues].flatMap(([path, message]): [string, string][] => {
      if (!path.startsWith('properties')) return []
      const field = draft.fields.find(({ name }) => path.startsWith(`properties.${name}`))
      return draft.mode === 'json' || !field ? [['json', message]] : [[`value ${field.id}`, message]]
    }),
  )
}

/** The properties to send: a PATCH keeps those that it does not name. */
export function changesOf(before: Properties, after: Properties): { changed: Properties; missing: string[] } {
  const changed = Object.entries(after).filter(([name, value]) => !isSame(before[name], value))
  return {
    changed: Object.fromEntries(changed),
    missing: Object.keys(before).filter((name) => !Object.hasOwn(after, name)),
  }
}

const isSame = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other)
