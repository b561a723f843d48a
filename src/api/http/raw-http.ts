// Answers that Node gives below Fastify (to bytes that are no HTTP, an unknown Expect, CONNECT), in our envelope.
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { type ErrorCode, MusterError } from '../../kernel/errors.ts'
import { newId } from '../../kernel/id.ts'
import { toAnswer } from './errors.ts'

const CLIENT_FAILURES: Readonly<Record<string, { code: ErrorCode; message: string }>> = {
  HPE_HEADER_OVERFLOW: { code: 'HEADERS_TOO_LARGE', message: 'The headers are larger than 16 kB.' },
  ERR_HTTP_REQUEST_TIMEOUT: { code: 'REQUEST_TIMEOUT', message: 'The request took too long to arrive.' },
}

export interface RawAnswers {
  onMalformed(error: Error & { code?: string }, socket: Duplex): void
  watch(server: Server): void
  /** Ends connections that never sent a request: a server that closes would wait for them. */
  endSilent(): void
}

export function createRawAnswers(): RawAnswers {
  // Requests under way on a connection. Accepted requests are answered before the connection gets the error and closes.
  const underWay = new WeakMap<Duplex, number>()
  const toldOff = new WeakMap<Duplex, MusterError>()
  const open = new Set<Socket>()

  const end = (socket: Duplex, failure: MusterError): void => {
    if (socket.destroyed || !socket.writable) socket.destroy()
    else socket.end(write(failure))
  }
  return {
    onMalformed(error, socket) {
      if (error.code === 'ECONNRESET') {
        socket.destroy()
        return
      }
      const known = CLIENT_FAILURES[error.code ?? ''] ?? { code: 'INVALID_REQUEST', message: 'This is not valid HTTP.' }
      const failure = new MusterError(known.code as ErrorCode, known.message) // a code of the table or the default
      // A request that never arrived whole is the one that failed, and no other code answers it.
      if (known.code !== 'REQUEST_TIMEOUT' && (underWay.get(socket) ?? 0) > 0) toldOff.set(socket, failure)
      else end(socket, failure)
    },
    endSilent() {
      for (const socket of open) if (!underWay.has(socket)) socket.destroy()
    },
    watch(server) {
      server.on('connection', (socket: Socket) => {
        open.add(socket)
        socket.once('close', () => open.delete(socket))
      })
      server.on('request', (request: IncomingMessage, response: ServerResponse) => {
        const { socket } = request
        underWay.set(socket, (underWay.get(socket) ?? 0) + 1)
        response.once('close', () => {
          const left = (underWay.get(socket) ?? 1) - 1
          underWay.set(socket, left)
          const failure = toldOff.get(socket)
          if (failure && left === 0) end(socket, failure)
        })
      })
      server.on('checkExpectation', (request: IncomingMessage) => {
        end(
          request.socket,
          new MusterError('EXPECTATION_FAILED', 'The only Expect header that this server supports is 100-continue.'),
        )
      })
      server.on('connect', (_request: IncomingMessage, socket: Duplex) => {
        end(socket, new MusterError('METHOD_NOT_ALLOWED', 'This server is no proxy.'))
      })
    },
  }
}

function write(failure: MusterError): string {
  const body = JSON.stringify(toAnswer(failure))
  return (
    `HTTP/1.1 ${failure.status} ${failure.code}\r\ncontent-type: application/json; charset=utf-8\r\n` +
    `content-length: ${Buffer.byteLength(body)}\r\nx-content-type-options: nosniff\r\ncache-control: no-store\r\n` +
    `x-request-id: ${newId()}\r\nconnection: close\r\n\r\n${body}`
  )
}
