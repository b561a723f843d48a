// Reads an app module once, before the database starts. An error names the file, the entries and their fields, and ends
// the start.
import { stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { z } from 'zod'
import type { AgentInput } from '../kernel/agent.ts'
import type { AppFlowDefinition, AppFunction } from '../kernel/app.ts'
import type { Middleware } from '../kernel/middleware.ts'
import type { CallTool, JsonSchema } from '../kernel/tool.ts'
import { type Arguments, jsonSchemaArguments, zodArguments } from '../tools/arguments.ts'
import { notingImports } from './app-imports.ts'
import { type AppParts, type AppToolParts, readParts } from './app-shape.ts'
import { guessImport, isAuthors, sayPlace } from './load-failure.ts'
import { type Mistakes, sayMistakes } from './mistakes.ts'

export interface LoadedApp {
  /** The path as the operator gave it: problems begin with it. */
  path: string
  file: string
  /** The name of the project in which the agents and flows live; null means the oldest project. */
  project: string | null
  functions: ReadonlyMap<string, AppFunction>
  tools: readonly CallTool[]
  agents: readonly AgentInput[]
  flows: readonly AppFlowDefinition[]
  /** The module's own objects: a hook may be a method. */
  middleware: readonly Middleware[]
}

/** A module may wait for something while it loads, but not for ever. */
const LOADED_WITHIN_MS = 10_000

/** `path` is taken from the folder the process was started in. Rejects with sentences that name the entries. */
export async function loadApp(path: string, withinMs = LOADED_WITHIN_MS): Promise<LoadedApp> {
  const file = resolve(path)
  const refuse = (problem: string | readonly string[], cause?: unknown): Error =>
    new Error(sayMistakes(path, [problem].flat()), cause === undefined ? {} : { cause })
  if (!(await isFile(file)))
    throw refuse(`there is no such file: ${file}. The path is taken from the folder in which Muster is started.`)
  const files = new Set([file])
  const sayAt = async (error: unknown): Promise<string> => {
    const place = await sayPlace(error, [...files].filter(isAuthors)).catch(() => null)
    return place === null ? '' : ` (at ${place})`
  }
  const module = await within(
    withinMs,
    notingImports(files, () => importModule(file)),
  ).catch(async (error: unknown) => {
    throw refuse(`the app module cannot be loaded: ${reasonOf(error)}${guessImport(error)}${await sayAt(error)}`, error)
  })
  if (module.default === undefined)
    throw refuse(
      'the app module has no default export. Export default {project?, functions?, tools?, agents?, flows?, middleware?}.',
    )
  let parts: AppParts
  try {
    parts = readParts(module.default)
  } catch (error) {
    const { problems, cause } = error as Mistakes // readParts throws nothing else
    const at = await sayAt(cause)
    throw refuse(
      problems.map((problem) => `${problem}${at}`),
      cause,
    )
  }
  const mistakes: Mistake[] = []
  const app: LoadedApp = {
    path,
    file,
    project: parts.project ?? null,
    functions: new Map(parts.functions),
    tools: (parts.tools ?? []).flatMap((tool) => toCallTool(tool, mistakes) ?? []),
    agents: parts.agents ?? [],
    flows: parts.flows ?? [],
    middleware: parts.middleware ?? [],
  }
  mistakes.push(...namedTwice('agent', app.agents), ...namedTwice('flow', app.flows), ...noJson('flow', app.flows))
  if (mistakes.length === 0) return app
  throw refuse(
    mistakes.map(({ problem }) => problem),
    mistakes.find(({ cause }) => cause !== undefined)?.cause,
  )
}

const isFile = async (file: string): Promise<boolean> => (await stat(file).catch(() => null))?.isFile() ?? false

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

interface Mistake {
  problem: string
  cause?: unknown
}

/** Only a list can name an entry twice. */
function namedTwice(noun: string, entries: readonly { name: string }[]): Mistake[] {
  const names = entries.map(({ name }) => name)
  const again = new Set(names.filter((name, index) => names.indexOf(name) !== index))
  return [...again].map((name) => ({ problem: `${noun} "${name}": the module has two of this name.` }))
}

/** A tree that leads back to itself, or has a value that JSON has not, cannot be stored. */
function noJson(noun: string, entries: readonly { name: string }[]): Mistake[] {
  return entries.flatMap((entry) => {
    try {
      JSON.stringify(entry)
      return []
    } catch (error) {
      const [reason] = reasonOf(error).split('\n')
      return { problem: `${noun} "${entry.name}" cannot be written as JSON: ${reason}`, cause: error }
    }
  })
}

/** A module compiled from TypeScript to CommonJS has its default export within another; the inner one counts. */
async function importModule(file: string): Promise<{ default?: unknown }> {
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

/** Null if the schema of the tool is wrong. */
function toCallTool({ name, ...tool }: AppToolParts & { name: string }, mistakes: Mistake[]): CallTool | null {
  let face: Arguments
  try {
    face = argumentsOf(tool.input)
  } catch (error) {
    mistakes.push({ problem: `tool "${name}": input: ${reasonOf(error)}`, cause: error })
    return null
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

/** Refuses a tool of the module that would hide one of Muster's own. */
export function requireOwnToolNames({ path, tools }: LoadedApp, builtIns: readonly { name: string }[]): void {
  const taken = new Set(builtIns.map(({ name }) => name))
  const hiding = tools.filter(({ name }) => taken.has(name))
  const problems = hiding.map(({ name }) => `tool "${name}": Muster has a tool of this name. Choose another name.`)
  if (problems.length > 0) throw new Error(sayMistakes(path, problems))
}

/** The module may bring a zod of its own, so a schema is recognised by its form. */
function argumentsOf(input: object): Arguments {
  if ('_zod' in input) return zodArguments(input as z.ZodType) // only zod 4 has that property
  if ('_def' in input) throw new Error('This schema is of an older zod. Use zod 4, or a JSON schema.')
  return jsonSchemaArguments(input as JsonSchema) // its keywords are checked one by one
}
