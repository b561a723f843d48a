import { randomUUID } from 'node:crypto'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { atEnd } from './at-end.ts'
import { createFixtureServer } from './mcp-fixture.ts'

export interface FixtureHttpServer {
  url: string
  /** Headers of the last request. */
  lastHeaders: IncomingHttpHeaders
  /** The description of the tool "changing", for sessions that start from now on. */
  description: string
  /** Forgets all sessions, as after a restart. */
  forgetSessions(): void
  cutConnections(): void
}

/** The fixture over streamable HTTP, with a server per session. It is stopped when the file ends. */
export async function startMcpHttp(): Promise<FixtureHttpServer> {
  const sessions = new Map<string, StreamableHTTPServerTransport>()
  const server = createServer(async (request, response) => {
    fixture.lastHeaders = request.headers
    const known = sessions.get(String(request.headers['mcp-session-id']))
    if (known) return known.handleRequest(request, response)
    if (request.headers['mcp-session-id']) return response.writeHead(404).end('no such session')
    const transport: StreamableHTTPServerTransport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => {
        sessions.set(id, transport)
      },
    })
    const { description } = fixture
    const mcp = createFixtureServer({ crash: () => server.closeAllConnections(), description })
    await mcp.connect(transport as Transport) // its optional properties are typed without "undefined"
    return transport.handleRequest(request, response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  atEnd(async () => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo // it listens on TCP
  const fixture: FixtureHttpServer = {
    url: `http://127.0.0.1:${port}/mcp`,
    lastHeaders: {},
    description: 'Changes when told.',
    forgetSessions: () => sessions.clear(),
    cutConnections: () => server.closeAllConnections(),
  }
  return fixture
}
