// Reads an app module once, at start. A problem is told with the name of the field, and nothing starts.
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { z } from 'zod'
import { type AgentInput, agentInput } from '../kernel/agent.ts'
import type { AppFlowDefinition, AppFunction } from '../kernel/app.ts'
import { jsonObject, nameField } from '../kernel/fields.ts'
import type { Middleware } from '../kernel/middleware.ts'
import type { CallTool, JsonSchema } from '../kernel/tool.ts'
import { offerImports } from './app-imports.ts'
import { type Arguments, jsonSchemaArguments, zodArguments } from './arguments.ts'

export interface LoadedApp {
  functions: ReadonlyMap<string, AppFunction>
  tools: readonly CallTool[]
  agents: readonly AgentInput[]
  flows: readonly AppFlowDefinition[]
  /** The module's own objects: a hook may be a method. */
  middleware: readonly Middleware[]
}

/** A module may wait for something while it loads, but not for ever. */
const LOADED_WITHIN_MS = 10_000

/** `path` is taken from the folder the process was started in. Rejects with a sentence that names the field. */
export async function loadApp(path: string, withinMs = LOADED_WITHIN_MS): Promise<LoadedApp> {
  const file = resolve(path)
  const refuse = (problem: string, cause?: unknown): Error =>
    new Error(`The app module ${file} ${problem}`, cause === undefined ? {} : { cause })
  const module = await within(withinMs, importModule(file)).catch((error: unknown) => {
    throw refuse(`cannot be loaded: ${error instanceof Error ? error.message : String(error)}`, error)
  })
  if (module.default === undefined)
    throw refuse('has no default export. Export default {functions?, tools?, agents?, flows?, middleware?}.')
  const parsed = appShape.safeParse(module.default)
  if (!parsed.success) throw refuse(`is not valid: ${describe(parsed.error)}.`)
  const { functions = {}, tools = {}, agents = [], flows = {}, middleware = [] } = parsed.data
  return {
    functions: new Map(Object.entries(functions)),
    tools: Object.entries(tools).map(([name, tool]) => toCallTool(name, tool, refuse)),
    agents: Array.isArray(agents) ? agents : Object.entries(agents).map(([name, agent]) => ({ ...agent, name })),
    flows: Array.isArray(flows) ? flows : Object.entries(flows).map(([name, flow]) => ({ name, root: rootOf(flow) })),
    middleware,
  }
}

/** A node has a type; an object with a root instead is the body of a request that creates a flow. */
function rootOf(flow: Record<string, unknown>): Record<string, unknown> {
  const inner = 'type' in flow ? undefined : jsonObject.safeParse(flow.root).data
  return inner ?? flow
}

/** Names that begin with `muster.` are ours. */
const functionName = nameField.refine((name) => !name.startsWith('muster.'), 'must not begin with "muster."')

const functionField = z.custom<AppFunction>((value) => typeof value === 'function', 'must be a function')
const toolName = z.string().regex(/^[a-zA-Z0-9_-]{1,64}$/, 'must be letters, digits, "_" and "-", at most 64')

const appTool = z.strictObject({
  description: z.string().min(1).max(20_000),
  input: z.custom<object>((value) => value !== null && typeof value === 'object', 'must be a zod or a JSON schema'),
  effect: z.enum(['readonly', 'keyed', 'unsafe']).default('unsafe'),
  poller: z.boolean().default(false),
  timeout: z.int().min(1).max(2_147_483_647).optional(),
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
  if (unknown !== undefined) say([], `Unrecognized key: "${unknown}"`)
  for (const name of HOOKS) {
    if (fields[name] !== undefined && typeof fields[name] !== 'function') say([name], 'must be a function')
  }
  if (fields.live !== undefined && typeof fields.live !== 'boolean') say(['live'], 'must be true or false')
  if (HOOKS.every((name) => fields[name] === undefined)) say([], `must have one of ${HOOKS.join(', ')}`)
})

const appShape = z.strictObject({
  functions: z.record(functionName, functionField).optional(),
  tools: z.record(toolName, appTool).optional(),
  agents: z.union([z.array(agentInput), z.record(nameField, agentInput.omit({ name: true }))]).optional(),
  flows: z
    .union([z.array(z.strictObject({ name: nameField, root: jsonObject })), z.record(nameField, jsonObject)])
    .optional(),
  middleware: z.array(middlewareField).max(100).optional(),
})

/** An instance of a class may have fields of its own. */
function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || Object.getPrototypeOf(prototype) === null
}

/** A module that names its default twice (compiled from TypeScript to CommonJS) has the inner one. */
async function importModule(file: string): Promise<{ default?: unknown }> {
  offerImports()
  const module: { default?: unknown } = await import(pathToFileURL(file).href)
  const outer = module.default
  return outer !== null && typeof outer === 'object' && '__esModule' in outer && 'default' in outer ? outer : module
}

/** The timer also keeps the process alive: without one, Node ends a process that waits for nothing else, silently. */
async function within<Result>(ms: number, loading: Promise<Result>): Promise<Result> {
  const late = Promise.withResolvers<never>()
  const sentence = `it did not finish within ${ms / 1_000} s. Its top level may await a promise that never settles.`
  const timer = setTimeout(() => late.reject(new Error(sentence)), ms)
  try {
    return await Promise.race([loading, late.promise])
  } finally {
    clearTimeout(timer)
  }
}

function toCallTool(
  name: string,
  tool: z.output<typeof appTool>,
  refuse: (problem: string, cause?: unknown) => Error,
): CallTool {
  let face: Arguments
  try {
    face = argumentsOf(tool.input)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw refuse(`is not valid: tools.${name}.input: ${reason}`, error)
  }
  return {
    kind: 'call',
    name,
    description: tool.description,
    ...face,
    effect: tool.effect,
    isPoller: tool.poller,
    timeoutMs: tool.timeout ?? null,
    execute: async (args, context) => {
      try {
        return await tool.execute(args as never, context) // parsed by the tool's own schema
      } catch (error) {
        // The model reads the message alone; the stack is for the operator of this process.
        if (!context.signal.aborted) {
          context.log.warn({ run_id: context.run_id, tool: name, err: error }, 'a tool of the app module threw')
        }
        throw error
      }
    },
  }
}

/** The module may bring a zod of its own, so a schema is recognised by its form. */
function argumentsOf(input: object): Arguments {
  if ('_zod' in input) return zodArguments(input as z.ZodType) // only zod 4 has that property
  if ('_def' in input) throw new Error('This schema is of an older zod. Use zod 4, or a JSON schema.')
  return jsonSchemaArguments(input as JsonSchema) // any object may be one; what it holds is read keyword by keyword
}

function describe(error: z.ZodError): string {
  const issue = deepest(error.issues[0])
  const path = issue.path.map(String).join('.') || 'the default export'
  const isAbsent = / received undefined$/.test(issue.message)
  return `${path}: ${isAbsent ? 'is required' : issue.message.replace(/^Invalid input: /, '')}`
}

/** The problem of the alternative that a value came closest to, for a list or a record that fits none. */
function deepest(issue: z.core.$ZodIssue | undefined): { path: PropertyKey[]; message: string } {
  if (issue === undefined) return { path: [], message: 'invalid' }
  const inner =
    issue.code === 'invalid_union'
      ? issue.errors.map((branch) => deepest(branch[0]))
      : issue.code === 'invalid_key'
        ? issue.issues.map(deepest)
        : []
  const closest = inner.sort((a, b) => b.path.length - a.path.length)[0]
  return closest ? { path: [...issue.path, ...closest.path], message: closest.message } : issue
}
