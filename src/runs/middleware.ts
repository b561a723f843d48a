// The app module's middleware around model and tool calls. A hook may throw, hang or return anything.

import type { z } from 'zod'
import { copyJson } from '../kernel/copy-json.ts'
import { isRecord } from '../kernel/is-record.ts'
import { LARGEST_VALUE_BYTES } from '../kernel/limits.ts'
import {
  type Middleware,
  type MiddlewareContext,
  middlewareRequest,
  middlewareResponse,
  type RequestChanges,
} from '../kernel/middleware.ts'
import type { ModelRequest } from '../kernel/model-call.ts'
import { estimateInputTokens } from '../models/estimate-tokens.ts'
import { cutToBytes, toJsonResult } from '../tools/json-result.ts'
import { callHook } from './call-hook.ts'
import type { OwnedRun } from './owned-run.ts'
import type { PendingCall } from './pending-call.ts'
import { changeRequest, requestChanges, requestView } from './request-view.ts'
import { type Answered, changeResponse, responseView } from './response-view.ts'

/** aborted: the signal fired before the hooks were done. */
export type Passed<Value> = { kind: 'passed'; value: Value } | { kind: 'failed'; message: string } | { kind: 'aborted' }

type HookName = 'beforeModel' | 'afterModel' | 'beforeTool' | 'afterTool'
type Hook<Name extends HookName> = NonNullable<Middleware[Name]>

export const hasHook = ({ deps }: OwnedRun, name: HookName): boolean =>
  deps.middleware?.some((each) => each[name] !== undefined) ?? false

/** True if text is held back: middleware that may change the text must see it before it is shown. */
export const holdsText = ({ deps }: OwnedRun): boolean =>
  deps.middleware?.some((each) => each.afterModel !== undefined && each.live !== true) ?? false

export interface PreparedRequest {
  request: ModelRequest
  tokens: number
  /** The changes that the hooks have made, for the journal; cut if they are long. */
  changes?: RequestChanges | string
}

export async function beforeModel(
  owned: OwnedRun,
  request: ModelRequest,
  { step, tokens, signal }: { step: number; tokens: number; signal: AbortSignal },
): Promise<Passed<PreparedRequest>> {
  let current = request
  for (const { name, hook } of hooksOf(owned, 'beforeModel')) {
    const ctx = contextOf(owned, step)
    const hooked = await run(owned, name, signal, (own) => hook({ request: requestView(current), ctx, signal: own }))
    if (hooked.kind !== 'passed') return hooked
    if (isNothing(hooked.value)) continue
    const read = readAs(middlewareRequest, requestView(current), hooked.value, 'a request')
    if (!read.ok) return failedAt(name, read.problem)
    const changed = changeRequest(current, requestView(current), read.value)
    if (!changed.ok) return failedAt(name, `returned a request that does not fit: ${changed.problem}.`)
    current = changed.request
  }
  if (current === request) return { kind: 'passed', value: { request, tokens } }
  return fit(owned, { before: request, after: current, tokens })
}

/** The changed request must fit into the context of the model, together with its answer. */
function fit(
  owned: OwnedRun,
  { before, after, tokens }: { before: ModelRequest; after: ModelRequest; tokens: number },
): Passed<PreparedRequest> {
  const { contextTokens } = owned.model
  const total = Math.max(0, tokens + estimateInputTokens(after) - estimateInputTokens(before))
  if (total >= contextTokens) {
    const message = `The middleware made the request longer (about ${total} tokens) than the model can read (${contextTokens}).`
    return { kind: 'failed', message }
  }
  const request = { ...after, maxOutputTokens: Math.min(after.maxOutputTokens, contextTokens - total) }
  const changes = requestChanges(requestView(before), requestView(request))
  if (!changes) return { kind: 'passed', value: { request, tokens: total } }
  const kept = toJsonResult(changes, owned.settings.tool_output_limit)
  // The views are JSON, or a text if they were cut.
  return { kind: 'passed', value: { request, tokens: total, ...(kept.ok ? { changes: kept.value as string } : {}) } }
}

export async function afterModel(
  owned: OwnedRun,
  answered: Answered,
  { step, signal }: { step: number; signal: AbortSignal },
): Promise<Passed<Answered>> {
  let current = answered
  for (const { name, hook } of hooksOf(owned, 'afterModel')) {
    const ctx = contextOf(owned, step)
    const hooked = await run(owned, name, signal, (own) => hook({ response: responseView(current), ctx, signal: own }))
    if (hooked.kind !== 'passed') return hooked
    if (isNothing(hooked.value)) continue
    const read = readAs(middlewareResponse, responseView(current), hooked.value, 'a response')
    if (!read.ok) return failedAt(name, read.problem)
    const changed = changeResponse(current, read.value)
    if (!changed.ok) return failedAt(name, `returned a response that does not fit: ${changed.problem}.`)
    current = changed.answered
  }
  return { kind: 'passed', value: current }
}

export interface ToolResult {
  result: unknown
  isError: boolean
}

type HookedCall = Pick<PendingCall, 'id' | 'name' | 'args' | 'step'>

/** The result that takes the place of the call. Null means that the call is made. */
export async function beforeTool(
  owned: OwnedRun,
  call: HookedCall,
  signal: AbortSignal,
): Promise<Passed<ToolResult | null>> {
  for (const { name, hook } of hooksOf(owned, 'beforeTool')) {
    const ctx = contextOf(owned, call.step)
    const hooked = await run(owned, name, signal, (own) => hook({ call: callView(call), ctx, signal: own }))
    if (hooked.kind !== 'passed') return hooked
    if (isNothing(hooked.value)) continue
    const read = readReplacement(hooked.value, owned.settings.tool_output_limit)
    return read.ok ? { kind: 'passed', value: read.value } : failedAt(name, read.problem)
  }
  return { kind: 'passed', value: null }
}

/** Undefined leaves a result as it is; every other value takes its place. */
export async function afterTool(
  owned: OwnedRun,
  call: HookedCall,
  given: ToolResult,
  signal: AbortSignal,
): Promise<Passed<ToolResult>> {
  let { result } = given
  for (const { name, hook } of hooksOf(owned, 'afterTool')) {
    const ctx = contextOf(owned, call.step)
    const hooked = await run(owned, name, signal, (own) =>
      hook({ call: callView(call), result: copyJson(result), is_error: given.isError, ctx, signal: own }),
    )
    if (hooked.kind !== 'passed') return hooked
    if (hooked.value === undefined) continue
    const json = toJsonResult(hooked.value, owned.settings.tool_output_limit)
    if (!json.ok) return failedAt(name, `returned a result that ${json.reason}.`)
    result = json.value
  }
  return { kind: 'passed', value: { result, isError: given.isError } }
}

export const hookError = (message: string): { error: string } => ({ error: `MIDDLEWARE_ERROR: ${message}` })

interface NamedHook<Name extends HookName> {
  name: string
  hook: Hook<Name>
}

function hooksOf<Name extends HookName>({ deps }: OwnedRun, name: Name): NamedHook<Name>[] {
  const { middleware } = deps
  if (!middleware) return []
  return middleware.flatMap((each, index) => {
    const hook = each[name] as Hook<Name> | undefined // the hook of this name
    // A hook may be a method of an object with a state of its own.
    return hook ? [{ name: `middleware[${index}].${name}`, hook: hook.bind(each) as Hook<Name> }] : []
  })
}

const contextOf = ({ run: { id, project_id }, agent }: OwnedRun, step: number): MiddlewareContext => ({
  run_id: id,
  project_id,
  agent: agent.name,
  step,
})

function callView({ id, name, args }: HookedCall) {
  return { id, name, args: copyJson(args) as Record<string, unknown> } // arguments that were parsed are an object
}

async function run(
  { deps, run: { id }, settings }: OwnedRun,
  name: string,
  signal: AbortSignal,
  hook: (signal: AbortSignal) => unknown,
): Promise<Passed<unknown>> {
  const hooked = await callHook(hook, { signal, timeoutMs: settings.tool_timeout })
  switch (hooked.kind) {
    case 'returned':
      return { kind: 'passed', value: hooked.value }
    case 'aborted':
      return hooked
    case 'failed':
      // The run shows the message alone; the stack is for the operator of this process.
      deps.log.warn({ run_id: id, hook: name, err: hooked.thrown }, 'a hook of the app module failed')
      return failedAt(name, hooked.message)
  }
}

const failedAt = (name: string, message: string): { kind: 'failed'; message: string } => ({
  kind: 'failed',
  message: cutToBytes(`${name} ${message}`, LONGEST_MESSAGE).text,
})

const LONGEST_MESSAGE = 10_000

const isNothing = (value: unknown): value is null | undefined => value === undefined || value === null

/** Parts that a hook does not return stay as they were given. */
function readAs<Schema extends z.ZodType>(
  schema: Schema,
  given: object,
  value: unknown,
  what: string,
): { ok: true; value: z.output<Schema> } | { ok: false; problem: string } {
  const json = toJsonResult(value, LARGEST_VALUE_BYTES)
  if (!json.ok) return { ok: false, problem: `returned ${what} that ${json.reason}.` }
  if (json.rawBytes !== undefined)
    return { ok: false, problem: `returned ${what} of more than ${LARGEST_VALUE_BYTES} bytes.` }
  const parsed = schema.safeParse(isRecord(json.value) ? { ...given, ...json.value } : json.value)
  if (parsed.success) return { ok: true, value: copyJson(parsed.data) }
  const [issue] = parsed.error.issues
  const path = issue?.path.map(String).join('.')
  return { ok: false, problem: `returned ${what} that does not fit: ${path ? `${path}: ` : ''}${issue?.message}.` }
}

/** The result is cut like that of a tool. */
function readReplacement(
  value: unknown,
  limitBytes: number,
): { ok: true; value: ToolResult } | { ok: false; problem: string } {
  if (typeof value !== 'object' || value === null || !('result' in value)) return NO_REPLACEMENT
  const { result, is_error: isError = false, ...others } = value as Record<string, unknown> // an object
  if (typeof isError !== 'boolean' || Object.keys(others).length > 0) return NO_REPLACEMENT
  const json = toJsonResult(result, limitBytes)
  if (!json.ok) return { ok: false, problem: `returned a result that ${json.reason}.` }
  return { ok: true, value: { result: json.value, isError } }
}

const NO_REPLACEMENT = { ok: false, problem: 'must return nothing, or an object {result, is_error?}.' } as const
