import type { AppFunction } from '../kernel/app.ts'
import { jsonSize } from '../kernel/json-size.ts'
import type { Log } from '../kernel/log.ts'
import { MAX_DEPTH } from '../kernel/strict-json.ts'
import type { ToolContext } from '../kernel/tool.ts'
import { executeTool } from '../tools/execute-tool.ts'
import type { LeafOutcome, LeafTask } from './machine.ts'
import { messageOf } from './pipeline/parts.ts'
import { MOST_BYTES, MOST_NODES } from './render.ts'

/** A function without a time of its own ends with its flow. */
const LONGEST_MS = 2_147_483_647

/** Waits without the slot that the leaf holds: other leaves may work meanwhile. */
export type WhileIdle = <Value>(wait: () => Promise<Value>) => Promise<Value>

/** The context of a function; built-in functions may give their slot away with `whileIdle`. */
export interface FunctionContext extends ToolContext {
  whileIdle?: WhileIdle
}

interface Called {
  whileIdle?: WhileIdle
  run: AppFunction
  signal: AbortSignal
  flowRunId: string
  projectId: string
  log: Log
}

export interface FunctionCall extends Called {
  task: Pick<LeafTask, 'id' | 'leaf' | 'attempt' | 'isEach'> & {
    /** The argument of the function; where it is called several times, the arguments in the order of the calls. */
    argument: unknown
  }
}

/** Never throws. A function with several arguments is called with one after the other; its results are a list. */
export async function callFunction({ task, ...called }: FunctionCall): Promise<LeafOutcome> {
  const name = 'function' in task.leaf ? task.leaf.function : ''
  const { attempt } = task
  const key = `${called.flowRunId}:${task.id}`
  const timeoutMs = task.leaf.timeout ?? LONGEST_MS
  if (!task.isEach) return callOnce({ ...called, name, key, attempt, timeoutMs }, task.argument)
  const values: unknown[] = []
  const size = { bytes: 0, nodes: 0 }
  try {
    for (const argument of task.argument as Iterable<unknown>) {
      const place = values.length
      const outcome = await callOnce({ ...called, name, key: `${key}:${place}`, attempt, timeoutMs }, argument)
      if (outcome.status === 'failed') return outcome
      values.push(outcome.value)
      const { bytes, nodes } = jsonSize(outcome.value)
      size.bytes += bytes
      size.nodes += nodes
      if (size.bytes > MOST_BYTES || size.nodes > MOST_NODES)
        return {
          status: 'failed',
          error: `The calls of the function ${name} gave more than ${MOST_BYTES} bytes in all.`,
        }
    }
  } catch (error) {
    return { status: 'failed', error: messageOf(error) }
  }
  return { status: 'completed', value: values }
}

export interface OneCall extends Called {
  name: string
  /** The same for every attempt. */
  key: string
  attempt: number
  timeoutMs?: number
}

/** Never throws. */
export async function callOnce(call: OneCall, argument: unknown): Promise<LeafOutcome> {
  const { name, run, key, attempt, signal, flowRunId, projectId, log, timeoutMs = LONGEST_MS } = call
  const tool = {
    ...({ kind: 'call', effect: 'keyed', isPoller: false, timeoutMs: null } as const),
    ...{ name, description: '', inputSchema: {}, parse: (args: unknown) => ({ ok: true as const, args }) },
    execute: async (args: unknown, context: Parameters<AppFunction>[1]) => {
      try {
        const value = await run(args as never, context) // its author's word
        requireStorable(value, name)
        return value
      } catch (error) {
        // Clients read the message alone; the stack is for the operator of this process.
        if (!context.signal.aborted) {
          log.warn({ flow_run_id: flowRunId, function: name, key, attempt, err: error }, 'a function of a flow threw')
        }
        throw error
      }
    },
  }
  const context: FunctionContext = {
    ...{ signal, key, attempt, run_id: flowRunId, project_id: projectId, log, emit: () => {} },
    ...(call.whileIdle ? { whileIdle: call.whileIdle } : {}),
  }
  const outcome = await executeTool(tool, argument, context, { timeoutMs, outputLimitBytes: MOST_BYTES })
  if (!outcome.isError && (outcome.rawBytes ?? 0) <= MOST_BYTES) return { status: 'completed', value: outcome.result }
  if (!outcome.isError) return { status: 'failed', error: `The function ${name} gave more than ${MOST_BYTES} bytes.` }
  const { error } = outcome.result as { error: string } // executeTool's word for what went wrong
  return { status: 'failed', error: inTermsOfFunctions(error, name) }
}

/** Turns an error that speaks to a model about its tool into one that speaks to people about their function. */
const inTermsOfFunctions = (error: string, name: string): string =>
  error
    .replace(/\b([Tt])he tool(?: "[^"]*")?/, (_, the: string) => `${the}he function ${name}`)
    .replace(/ It may have taken effect all the same:.*$/, '')

/** Later steps compute with the result: a value that the database cannot hold must not be changed unseen. */
function requireStorable(value: unknown, name: string, depth = 1, seen = { nodes: 0 }): void {
  seen.nodes += 1
  if (seen.nodes > MOST_NODES) throw new Error(`The result of the function ${name} has more than ${MOST_NODES} values.`)
  if (typeof value === 'string') {
    if (value.includes('\0') || !value.isWellFormed())
      throw new Error(`The result of the function ${name} holds a text that is no Unicode, or NUL.`)
    return
  }
  if (value === null || typeof value !== 'object') return
  if (depth > MAX_DEPTH)
    throw new Error(`The result of the function ${name} is nested deeper than ${MAX_DEPTH} levels.`)
  for (const inner of Array.isArray(value) ? value : Object.values(value)) {
    requireStorable(inner, name, depth + 1, seen)
  }
}
