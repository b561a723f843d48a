// The shape of an app module's default export, and the place of a fault in words: `agent "Writer": max_steps`.
import { types } from 'node:util'
import { z } from 'zod'
import { agentInput } from '../kernel/agent.ts'
import type { AppFlowDefinition, AppFunction } from '../kernel/app.ts'
import { explainIssue, placedProblems } from '../kernel/explain-issue.ts'
import { jsonObject, nameField } from '../kernel/fields.ts'
import { isRecord } from '../kernel/is-record.ts'
import { LONGEST_MS } from '../kernel/limits.ts'
import type { Middleware } from '../kernel/middleware.ts'
import { didYouMean } from '../kernel/nearest.ts'
import { sentenceAt } from '../kernel/sentence-at.ts'
import { Mistakes } from './mistakes.ts'

export type AppParts = z.output<ReturnType<typeof shapeFor>>

/** The parts of a module that its author gave. Throws mistakes, each of which names the entry and its field. */
export function readParts(module: unknown): AppParts {
  const kind = sayKind(module)
  if (kind !== null) throw new Mistakes([`the default export ${kind}`])
  let parsed: z.ZodSafeParseResult<AppParts>
  try {
    parsed = shapeFor(module).safeParse(module, { error: explainIssue })
  } catch (error) {
    // Only a getter of the module throws.
    const reason = error instanceof Error ? error.message : String(error)
    throw new Mistakes([`${placeOf(findThrow(module) ?? [], module)} cannot be read: ${reason}`], error)
  }
  if (parsed.success) return parsed.data
  throw new Mistakes(describe(parsed.error, module))
}

/** Values that people export by mistake, each with the remedy. */
function sayKind(module: unknown): string | null {
  if (types.isPromise(module)) {
    module.catch(() => {}) // the mistake is told, and the process ends
    return 'is a promise. Write "export default await …".'
  }
  if (typeof module !== 'function') return null
  return /^class\b/.test(Function.prototype.toString.call(module))
    ? 'is a class. Export an object: "export default {…}".'
    : 'is a function. Export the object that it returns: "export default f()".'
}

/** Names that begin with `muster.` are reserved for Muster. */
const functionName = nameField.refine((name) => !name.startsWith('muster.'), 'must not begin with "muster."')

const functionField = z.custom<AppFunction>((value) => typeof value === 'function', 'must be a function')
const toolName = z
  .string()
  .regex(/^[a-zA-Z0-9_-]{1,64}$/, 'must be letters, digits, "_" and "-", at most 64')
  .refine((name) => name !== '__proto__', 'must have another name')

export type AppToolParts = z.output<typeof appTool>

const appTool = z.strictObject({
  description: z.string().min(1).max(20_000),
  input: z.custom<object>((value) => value !== null && typeof value === 'object', 'must be a zod or a JSON schema'),
  effect: z.enum(['readonly', 'keyed', 'unsafe']).default('unsafe'),
  poller: z.boolean().default(false),
  timeout: z.int().min(1).max(LONGEST_MS).optional(),
  execute: functionField,
})

const HOOKS = ['beforeModel', 'afterModel', 'beforeTool', 'afterTool'] as const
const hookFields: ReadonlySet<string> = new Set([...HOOKS, 'live'])

/** The objects are kept as they are, so that the methods of a class find their own object. */
const middlewareField = z.custom<Middleware>().superRefine((value: unknown, refined) => {
  const say = (path: string[], message: string): void => refined.addIssue({ code: 'custom', path, message })
  if (value === null || typeof value !== 'object') return say([], 'must be an object of hooks')
  const fields = value as Record<string, unknown> // any object
  const unknown = isPlain(value) ? Object.keys(value).find((name) => !hookFields.has(name)) : undefined
  if (unknown !== undefined) say([], `has no field "${unknown}".${didYouMean(unknown, hookFields)}`)
  for (const name of HOOKS) {
    if (fields[name] !== undefined && typeof fields[name] !== 'function') say([name], 'must be a function')
  }
  if (fields.live !== undefined && typeof fields.live !== 'boolean') say(['live'], 'must be true or false')
  if (HOOKS.every((name) => fields[name] === undefined)) say([], `must have one of ${HOOKS.join(', ')}`)
})

/** The entries as a list. Zod's record drops the key "__proto__", and takes "constructor" for a class instance. */
function entriesOf<Entry extends z.ZodType, Named>(
  name: z.ZodType,
  entry: Entry,
  toNamed: (name: string, entry: z.output<Entry>) => Named,
) {
  return z
    .custom<object>(isRecord, 'must be an object of entries by name')
    .refine(isPlain, 'must be a plain object of entries by name: no instance of a class, no "__proto__"')
    .transform((object, context): Named[] =>
      Object.entries(object).flatMap(([key, value]) => {
        const named = name.safeParse(key, { error: explainIssue })
        const parsed = entry.safeParse(value, { error: explainIssue })
        const issues = [...(named.error?.issues ?? []), ...(parsed.error?.issues ?? [])]
        for (const { path, message } of placedProblems(issues)) {
          context.issues.push({ code: 'custom', path: [key, ...path], message, input: value })
        }
        return parsed.success ? [toNamed(key, parsed.data)] : []
      }),
    )
}

/** An instance of a class may have fields of its own. */
function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || Object.getPrototypeOf(prototype) === null
}

const flowBody = z.strictObject({ root: jsonObject, enabled: z.boolean().optional() })

/** A node has a type; an object with a root instead is the body of a request that creates a flow. */
const flowEntry = jsonObject.transform((flow, context): Omit<AppFlowDefinition, 'name'> => {
  if ('type' in flow || !('root' in flow)) return { root: flow }
  const body = flowBody.safeParse(flow, { error: explainIssue })
  if (body.success) return body.data
  for (const { path, message } of placedProblems(body.error.issues)) {
    context.issues.push({ code: 'custom', path, message, input: flow })
  }
  return z.NEVER
})

const withName = <Entry extends object>(name: string, entry: Entry) => ({ ...entry, name })

const appShape = z.strictObject({
  project: nameField.optional(),
  functions: entriesOf(functionName, functionField, (name, made) => [name, made] as const).optional(),
  tools: entriesOf(toolName, appTool, withName).optional(),
  agents: entriesOf(nameField, agentInput.omit({ name: true }), withName).optional(),
  flows: entriesOf(nameField, flowEntry, withName).optional(),
  middleware: z.array(middlewareField).max(100).optional(),
})
const listedAgents = z.array(agentInput).optional()
const listedFlows = z.array(flowBody.extend({ name: nameField })).optional()

/** Agents and flows may be lists. A list is held against the schema of a list alone, so that its faults are its own. */
function shapeFor(module: unknown) {
  const { agents, flows } = isRecord(module) ? module : {}
  return appShape.extend({
    agents: Array.isArray(agents) ? listedAgents : appShape.shape.agents,
    flows: Array.isArray(flows) ? listedFlows : appShape.shape.flows,
  })
}

/** Deeper values are read by no schema. */
const DEEPEST = 8

/** The path to the first value whose getter throws; null if there is none. */
function findThrow(value: unknown, path: PropertyKey[] = [], seen = new Set<unknown>()): PropertyKey[] | null {
  if (value === null || typeof value !== 'object' || seen.has(value) || path.length > DEEPEST) return null
  seen.add(value)
  for (const key of Object.keys(value)) {
    const at = [...path, Array.isArray(value) ? Number(key) : key]
    try {
      const found = findThrow((value as Record<string, unknown>)[key], at, seen) // one of its own keys
      if (found) return found
    } catch {
      return at
    }
  }
  return null
}

/** All faults, each in a sentence of its own. */
const describe = (error: z.ZodError, module: unknown): string[] =>
  placedProblems(error.issues).map(({ path, message }) => sentenceAt(placeOf(path, module), message))

const NOUNS: ReadonlyMap<PropertyKey, string> = new Map([
  ['functions', 'function'],
  ['tools', 'tool'],
  ['agents', 'agent'],
  ['flows', 'flow'],
])

/** `agent "Writer": max_steps`, as people call the entry; `agents[0]: name` if it has no name. */
function placeOf([field, entry, ...rest]: readonly PropertyKey[], module: unknown): string {
  if (field === undefined) return 'the default export'
  if (entry === undefined) return String(field)
  const noun = NOUNS.get(field)
  const name = typeof entry === 'number' ? nameOf(module, String(field), entry) : String(entry)
  const within = rest.map(String).join('.')
  if (noun === undefined || name === null) {
    return `${String(field)}[${String(entry)}]${within === '' ? '' : `${noun ? ': ' : '.'}${within}`}`
  }
  return `${noun} "${name}"${within === '' ? '' : `: ${within}`}`
}

function nameOf(module: unknown, field: string, index: number): string | null {
  const list = isRecord(module) ? module[field] : null
  const entry: unknown = Array.isArray(list) ? list[index] : null
  const name = entry !== null && typeof entry === 'object' && 'name' in entry ? entry.name : null
  return typeof name === 'string' ? name : null
}
