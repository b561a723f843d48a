import type { AppFunction } from '../../kernel/app.ts'
import { errorText } from '../../kernel/error-text.ts'
import { jsonSize } from '../../kernel/json-size.ts'
import { LARGEST_VALUE_BYTES, LONGEST_MS } from '../../kernel/limits.ts'
import type { Log } from '../../kernel/log.ts'
import { MAX_DEPTH } from '../../kernel/strict-json.ts'
import { type CallClock, executeTool } from '../../tools/execute-tool.ts'
import type { FunctionContext, WhileIdle } from '../definition/function-context.ts'
import type { FlowLeaf } from '../machine/flow-leaf.ts'
import type { LeafOutcome } from '../machine/machine.ts'
import { MOST_NODES } from '../machine/render.ts'
import { functionKey } from './leaf-scope.ts'

interface Called {
  whileIdle?: WhileIdle
  run: AppFunction
  signal: AbortSignal
  flowRunId: string
  projectId: string
  log: Log
}

export interface FunctionCall extends Called {
  leaf: Pick<FlowLeaf, 'id' | 'node' | 'attempt' | 'isEach'> & {
    /** The scope of the keys of its calls. */
    scope: string
    /** The key that an earlier release handed the leaf out with: it stands. */
    key?: string
    /** The argument of the function; if it is called several times, the arguments in the order of the calls. */
    argument: unknown
  }
}

/** Never throws. A function with several arguments is called with one after the other; its results are a list. */
export async function callFunction({ leaf, ...called }: FunctionCall): Promise<LeafOutcome> {
  const name = 'function' in leaf.node ? leaf.node.function : ''
  const { attempt, scope, key } = leaf
  const shared = { ...called, leafId: leaf.id, name, attempt, timeoutMs: leaf.node.timeout ?? LONGEST_MS }
  if (!leaf.isEach) return callOnce({ ...shared, scope, key }, leaf.argument)
  const values: unknown[] = []
  const keys: string[] = []
  const size = { bytes: 0, nodes: 0 }
  try {
    for (const argument of leaf.argument as Iterable<unknown>) {
      const place = values.length
      const outcome = await callOnce({ ...shared, scope: `${scope}:${place}`, key: key && `${key}:${place}` }, argument)
      if (outcome.status === 'failed') return outcome
      values.push(outcome.value)
      keys.push(...(outcome.keys ?? []))
      const { bytes, nodes } = jsonSize(outcome.value)
      size.bytes += bytes
      size.nodes += nodes
      if (size.bytes > LARGEST_VALUE_BYTES || size.nodes > MOST_NODES)
        return {
          status: 'failed',
          error: `The calls of the function ${name} gave more than ${LARGEST_VALUE_BYTES} bytes in all.`,
        }
    }
  } catch (error) {
    return { status: 'failed', error: errorText(error) }
  }
  return { status: 'completed', value: values, keys }
}

export interface OneCall extends Called {
  leafId: string
  name: string
  /** The scope of the key: no other call of the flow run has it. */
  scope: string
  /** Without it the key is made from the scope, the function and its argument. */
  key?: string | undefined
  attempt: number
  /** A function without a timeout of its own ends with its flow. */
  timeoutMs?: number
}

/** Never throws. */
export async function callOnce(call: OneCall, argument: unknown): Promise<LeafOutcome> {
  const { name, run, scope, attempt, signal, flowRunId, leafId, projectId, log, timeoutMs = LONGEST_MS } = call
  const key = call.key ?? functionKey(scope, name, argument)
  const tool = {
    kind: 'call' as const,
    effect: 'keyed' as const,
    isPoller: false,
    timeoutMs: null,
    name,
    description: '',
    inputSchema: {},
    parse: (args: unknown) => ({ ok: true as const, args }),
    execute: async (args: unknown, context: Parameters<AppFunction>[1]) => {
      try {
        const value = await run(args as never, context) // the author of the function declares its argument
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
  let clock: CallClock | null = null
  const whileIdle: WhileIdle = (wait) => {
    const idle = (): ReturnType<typeof wait> => (call.whileIdle ? call.whileIdle(wait) : wait())
    return clock ? clock.standStill(idle) : idle()
  }
  const context: FunctionContext = {
    signal,
    key,
    attempt,
    run_id: flowRunId,
    leafId,
    scope,
    project_id: projectId,
    log,
    emit: () => {},
    whileIdle,
  }
  const onClock = (own: CallClock): void => {
    clock = own
  }
  const limits = { timeoutMs, outputLimitBytes: LARGEST_VALUE_BYTES, onClock }
  const outcome = await executeTool(tool, argument, context, limits)
  if (!outcome.isError && (outcome.rawBytes ?? 0) <= LARGEST_VALUE_BYTES)
    return { status: 'completed', value: outcome.result, keys: [key] }
  if (!outcome.isError)
    return { status: 'failed', error: `The function ${name} gave more than ${LARGEST_VALUE_BYTES} bytes.` }
  const { error } = outcome.result as { error: string } // the error of executeTool
  return { status: 'failed', error: inTermsOfFunctions(error, name) }
}

const inTermsOfFunctions = (error: string, name: string): string =>
  error
    .replace(/\b([Tt])he tool(?: "[^"]*")?/, (_, the: string) => `${the}he function ${name}`)
    .replace(/ It may have taken effect all the same:.*$/, '')

/** Throws if the database cannot hold the result: later steps compute with it, so it must not be changed unseen. */
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
