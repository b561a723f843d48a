// One connection to one MCP server, over streamable HTTP or to a child process, by the official client.

import { setTimeout as delay } from 'node:timers/promises'
import { Client, type ClientOptions } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport, StreamableHTTPError } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import {
  type CallToolResult,
  CallToolResultSchema,
  ErrorCode,
  McpError,
  ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js'
import { z } from 'zod'
import type { Fetch } from '../egress/egress.ts'
import { isUnsent } from '../egress/unsent.ts'
import { LONGEST_MS } from '../kernel/limits.ts'
import type { McpToolEntry } from '../kernel/mcp-server.ts'
import type { ToolContext } from '../kernel/tool.ts'
import type { ProgramStart } from './confine-programs.ts'
import { McpBroken } from './mcp-broken.ts'
import { createMcpFetch } from './mcp-fetch.ts'
import { readMcpResult } from './mcp-result.ts'
import { readToolList } from './mcp-tool-list.ts'
import { StdioTransport } from './stdio-transport.ts'
import { untilAborted } from './until-aborted.ts'

export type McpPlace =
  | { kind: 'http'; url: URL; headers: Record<string, string>; fetch: Fetch }
  | { kind: 'stdio'; program: ProgramStart }

export interface McpConnection {
  /** The tools that the server offers now; waits for a list that is being read again. */
  tools(): Promise<readonly McpToolEntry[]>
  /** Throws the tool's own error, or McpBroken if the connection failed. */
  call(name: string, args: unknown, context: ToolContext): Promise<unknown>
  /** Fires once, with the reason, when the connection is of no more use. */
  readonly closed: Promise<string>
  close(): Promise<void>
}

export interface McpClientOptions {
  connectTimeoutMs: number
  signal: AbortSignal
  /** A server whose call was abandoned must answer a ping within this time, or its connection is ended. */
  pingTimeoutMs: number
  maxMessageBytes: number
  onTools(tools: readonly McpToolEntry[]): void
}

// Calls end by the signal of their tool; the SDK's own timer must not be earlier.
const NO_TIMEOUT = LONGEST_MS
const GOODBYE_MS = 1_000

/** Results are not checked here: the schema and the result come from the same server. */
const ANYTHING_GOES: ClientOptions = {
  jsonSchemaValidator: {
    getValidator: () => (input) => ({ valid: true, data: input as never, errorMessage: undefined }),
  },
}

/** Rejects with McpBroken. If connecting fails, the started process is ended. */
export async function connectMcp(place: McpPlace, options: McpClientOptions): Promise<McpConnection> {
  const client = new Client({ name: 'muster', version: '1.0.0' }, ANYTHING_GOES)
  const transport = openTransport(place, options.maxMessageBytes)
  const closed = Promise.withResolvers<string>()
  const endingOf = (): string =>
    (transport instanceof StdioTransport && transport.ending) || 'the connection was closed'
  client.onclose = () => closed.resolve(endingOf())
  client.onerror = () => {} // each error reaches its call, or ends the connection

  const limit = AbortSignal.timeout(options.connectTimeoutMs)
  let isConnecting = true
  const broken = (error: unknown): McpBroken => {
    const ending = transport instanceof StdioTransport ? transport.ending : null
    const isLate = isConnecting && limit.aborted && ending === null
    return new McpBroken(
      isLate ? `it did not answer within ${options.connectTimeoutMs} ms` : (ending ?? reasonOf(error)),
      {
        cause: error,
        isSessionLost: error instanceof StreamableHTTPError && error.code === 404,
        // A status is an answer, as it is for http_fetch.
        mayHaveActed: !isUnsent(error) && !(error instanceof StreamableHTTPError && (error.code ?? 0) >= 400),
        output: transport instanceof StdioTransport ? transport.stderr : '',
      },
    )
  }

  let current: Promise<readonly McpToolEntry[]> = Promise.resolve([])
  let isStale = false
  const refresh = async (): Promise<readonly McpToolEntry[]> => {
    isStale = false
    const tools = await readToolList(client, { timeout: options.connectTimeoutMs })
    options.onTools(tools)
    return tools
  }
  const onChanged = (): void => {
    current = current.then(refresh)
    current.catch((error: unknown) => end(client, transport, `its tools could not be read (${reasonOf(error)})`))
  }
  client.setNotificationHandler(ToolListChangedNotificationSchema, () => {
    // However often the server reports a change, one more reading is enough.
    if (!isStale && !isConnecting) onChanged()
    isStale = true
  })

  try {
    // The SDK heeds a signal only once a request is under way.
    const signal = AbortSignal.any([limit, options.signal])
    const timing = { signal, timeout: NO_TIMEOUT }
    await untilAborted(client.connect(transport, timing), signal)
    isStale = false
    const first = await untilAborted(readToolList(client, timing), signal)
    options.onTools(first)
    current = Promise.resolve(first)
    isConnecting = false
  } catch (error) {
    const failure = broken(error)
    end(client, transport, failure.reason)
    throw failure
  }

  if (isStale) onChanged()

  async function checkAlive(): Promise<void> {
    try {
      await client.ping({ timeout: options.pingTimeoutMs })
    } catch (error) {
      const isAnswer = error instanceof McpError && error.code === ErrorCode.MethodNotFound
      if (!isAnswer) end(client, transport, 'it no longer answers')
    }
  }

  return {
    closed: closed.promise,
    tools: () => current,
    async call(name, args, { signal, key, emit }) {
      const params = { name, arguments: args as Record<string, unknown>, _meta: { 'muster/idempotency-key': key } } // checked against the tool's schema, which is an object's
      let result: CallToolResult
      try {
        result = await client.request({ method: 'tools/call', params }, CallToolResultSchema, {
          signal,
          timeout: NO_TIMEOUT,
          onprogress: ({ progress, total, message }) => emit({ progress, total, message }),
        })
      } catch (error) {
        if (signal.aborted) void checkAlive()
        throw signal.aborted || isOfServer(error) ? plain(error) : broken(error)
      }
      return readMcpResult(result)
    },
    async close() {
      if (transport instanceof StreamableHTTPClientTransport) {
        // Ending the MCP session is a courtesy to the server, which may be long gone.
        const late = delay(GOODBYE_MS, undefined, { ref: false })
        await Promise.race([transport.terminateSession().catch(() => {}), closed.promise, late])
      }
      await client.close()
    },
  }
}

function openTransport(place: McpPlace, maxMessageBytes: number): StdioTransport | StreamableHTTPClientTransport {
  if (place.kind === 'stdio') return new StdioTransport({ program: place.program, maxMessageBytes })
  const transport: StreamableHTTPClientTransport = new StreamableHTTPClientTransport(place.url, {
    requestInit: { headers: place.headers },
    fetch: createMcpFetch(place.fetch, {
      maxBytes: maxMessageBytes,
      onLost: (id, reason) =>
        transport.onmessage?.({
          jsonrpc: '2.0',
          id,
          error: { code: LOST, message: `The answer was lost: ${reason}.` },
        }),
    }),
  })
  return transport
}

/** A code of ours: the protocol leaves this range to implementations. */
const LOST = -32_051

/** Does not wait: a child process may take long to end, and the failed call need not wait for it. */
function end(client: Client, transport: StdioTransport | StreamableHTTPClientTransport, reason: string): void {
  if (transport instanceof StdioTransport) transport.kill(reason)
  else void client.close().catch(() => {})
}

const NOT_MCP = 'it answered with something that is not MCP'
const LOCAL_CODES: readonly number[] = [ErrorCode.ConnectionClosed, ErrorCode.RequestTimeout, LOST]

/** True for an answer of the server itself, even a nonsensical one; any other error is a failure of the connection. */
function isOfServer(error: unknown): boolean {
  return error instanceof McpError ? !LOCAL_CODES.includes(error.code) : error instanceof z.core.$ZodError
}

/** The reason as a part of a sentence. It never quotes the answer, which may be a page of some inner host. */
function reasonOf(error: unknown): string {
  if (error instanceof StreamableHTTPError) {
    return error.code && error.code > 0 ? `it answered with status ${error.code}` : 'it answered in another format'
  }
  if (error instanceof McpError) return error.message.replace(/^MCP error -?\d+: /, '')
  if (error instanceof z.core.$ZodError || error instanceof SyntaxError) return NOT_MCP
  if (!(error instanceof Error)) return String(error)
  const cause = error.cause instanceof Error ? error.cause.message : ''
  return cause || error.message
}

function plain(error: unknown): Error {
  if (error instanceof z.core.$ZodError) return new Error(`The MCP server failed: ${NOT_MCP}.`, { cause: error })
  const message = error instanceof Error ? error.message : String(error)
  return new Error(message.replace(/^MCP error -?\d+: /, ''), { cause: error })
}
