// A pooler between clients and a PostgreSQL, like PgBouncer: start packets with options are refused, and connections to
// the database are lent for as long as a client lives (session mode) or for one transaction (transaction mode). Each
// client's own password reaches the database, with the connection that it opens there.
import { once } from 'node:events'
import { createConnection, createServer, type Socket } from 'node:net'
import type { Cleanup } from './process.ts'

export interface Pooler {
  /** The URL of the database through the pooler. */
  readonly url: string
}

const ACCEPTED = new Set(['user', 'database', 'application_name', 'client_encoding'])
const READY = 'Z'.charCodeAt(0)
const IDLE = 'I'.charCodeAt(0)

interface Backend {
  socket: Socket
  client: Socket | null
  /** The bytes of an answer that has not arrived completely. */
  rest: Buffer
}

export async function startPooler(t: Cleanup, databaseUrl: string, mode: 'session' | 'transaction'): Promise<Pooler> {
  const target = new URL(databaseUrl)
  const sockets = new Set<Socket>()
  const lent: Backend[] = []
  const idle: Backend[] = []
  const server = createServer((client) => {
    follow(client)
    client.once('data', (packet: Buffer) => {
      const refused = startParameters(packet).find((name) => !ACCEPTED.has(name))
      if (refused !== undefined) return void client.end(failure(`unsupported startup parameter: ${refused}`))
      const backend: Backend = {
        socket: createConnection(Number(target.port || 5432), target.hostname),
        client,
        rest: Buffer.alloc(0),
      }
      follow(backend.socket)
      serve(client, backend)
      backend.socket.write(packet)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(async () => {
    for (const socket of sockets) socket.destroy()
    await new Promise<void>((resolve) => server.close(() => resolve()))
  })
  const url = new URL(databaseUrl)
  const address = server.address()
  url.host = `127.0.0.1:${typeof address === 'object' ? address?.port : address}`
  return { url: url.href }

  function follow(socket: Socket): void {
    sockets.add(socket)
    socket.on('error', () => socket.destroy())
    socket.on('close', () => sockets.delete(socket))
  }

  function serve(client: Socket, own: Backend): void {
    client.on('data', (bytes: Buffer) => {
      const isGoodbye = bytes[0] === 'X'.charCodeAt(0)
      if (isGoodbye) return void client.end()
      lentTo(client)?.socket.write(bytes)
    })
    client.on('close', () => {
      if (mode === 'session') own.socket.destroy()
    })
    own.socket.on('data', (bytes: Buffer) => answer(own, bytes))
    own.socket.on('close', () => own.client?.destroy())
    lent.push(own)
  }

  /** The connection that serves this client, or the connection that was put back last. */
  function lentTo(client: Socket): Backend | undefined {
    const holding = lent.find((backend) => backend.client === client)
    if (holding) return holding
    const next = idle.pop()
    if (next) {
      next.client = client
      lent.push(next)
    }
    return next
  }

  function answer(backend: Backend, bytes: Buffer): void {
    backend.client?.write(bytes)
    if (mode === 'session') return
    let rest = Buffer.concat([backend.rest, bytes])
    let status: number | undefined
    while (rest.length >= 5 && rest.length > rest.readUInt32BE(1)) {
      const end = 1 + rest.readUInt32BE(1)
      status = rest[0] === READY ? rest[5] : undefined
      rest = rest.subarray(end)
    }
    backend.rest = rest
    if (rest.length > 0 || status !== IDLE) return
    backend.client = null
    lent.splice(lent.indexOf(backend), 1)
    idle.push(backend)
  }
}

/** The names in a start packet: its length, its version, then names and values that end with a zero. */
function startParameters(packet: Buffer): string[] {
  const texts = packet.subarray(8, packet.readUInt32BE(0)).toString('latin1').split('\0')
  return texts.filter((text, index) => index % 2 === 0 && text !== '')
}

function failure(message: string): Buffer {
  const fields = Buffer.from(`SFATAL\0VFATAL\0C08P01\0M${message}\0\0`, 'latin1')
  const head = Buffer.alloc(5)
  head.write('E', 'latin1')
  head.writeUInt32BE(fields.length + 4, 1)
  return Buffer.concat([head, fields])
}
