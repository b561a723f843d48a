// A proxy between a server and its PostgreSQL that fails like a network: absent at first, or cut at the worst moment.
import { createConnection, createServer, type Socket } from 'node:net'
import type { Cleanup } from './process.ts'

export interface DatabaseProxy {
  /** The URL of the database through the proxy. */
  readonly url: string
  listen(): Promise<void>
  /** From now on a connection is cut after the database has committed and before the client gets the answer. */
  cutAtCommit(isOn: boolean): void
  /** The same as `cutAtCommit`, for this prepared statement outside of a transaction; null ends the cuts. */
  cutAfter(statement: string | null): void
  /** The number of connections that were cut at a commit. */
  cuts(): number
  /** Cuts every connection. The database may not notice before its next answer. */
  cutAll(): void
  /**
   * Closes only the database's side of the connections that were opened with this application name: their clients keep
   * a socket that takes everything and never answers, as behind a NAT that has forgotten the connection. Returns the
   * number of connections.
   */
  silence(applicationName: string): number
}

// PostgreSQL's answer to `commit`: the message C with its length and the words.
const committed = Buffer.from('C\0\0\0\x0bCOMMIT\0', 'latin1')
// Every answer outside of a transaction ends with this, after its statement is committed.
const idle = Buffer.from('Z\0\0\0\x05I', 'latin1')

export function createDatabaseProxy(t: Cleanup, databaseUrl: string, port: number): DatabaseProxy {
  const target = new URL(databaseUrl)
  const sockets = new Set<Socket>()
  const pairs = new Set<{ opening: string; silence: () => void }>()
  let isCutting = false
  let awaited: string | null = null
  let cuts = 0

  const server = createServer((client) => {
    const database = createConnection(Number(target.port || 5432), target.hostname)
    let isSilent = false
    const end = (): void => {
      if (isSilent && !client.destroyed) return
      client.destroy()
      database.destroy()
    }
    for (const socket of [client, database]) {
      sockets.add(socket)
      socket.on('error', end).on('close', end)
      socket.on('close', () => sockets.delete(socket))
    }
    let isUnderWay = false
    const pair = {
      opening: '',
      silence: () => {
        isSilent = true
        database.destroy()
      },
    }
    pairs.add(pair)
    client.on('close', () => pairs.delete(pair))
    client.on('data', (bytes) => {
      if (isSilent) return
      pair.opening ||= bytes.toString('latin1')
      if (awaited !== null && bytes.includes(awaited)) isUnderWay = true
      database.write(bytes)
    })
    database.on('data', (bytes) => {
      if ((isCutting && bytes.includes(committed)) || (isUnderWay && bytes.includes(idle))) {
        cuts++
        end()
      } else {
        client.write(bytes)
      }
    })
  })
  t.after(async () => {
    for (const socket of sockets) socket.destroy()
    await new Promise<void>((resolve) => server.close(() => resolve()))
  })

  const url = new URL(databaseUrl)
  url.host = `127.0.0.1:${port}`
  return {
    url: url.href,
    listen: () => new Promise((resolve, reject) => server.once('error', reject).listen(port, '127.0.0.1', resolve)),
    cutAtCommit: (isOn) => {
      isCutting = isOn
    },
    cutAfter: (statement) => {
      awaited = statement
    },
    cuts: () => cuts,
    cutAll: () => {
      for (const socket of sockets) socket.destroy()
    },
    silence: (applicationName) => {
      const cut = [...pairs].filter(({ opening }) => opening.includes(applicationName))
      for (const pair of cut) {
        pairs.delete(pair)
        pair.silence()
      }
      return cut.length
    },
  }
}
