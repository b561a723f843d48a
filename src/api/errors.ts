// Every way a request can fail ends here, in one envelope: our own failures, the framework's, the database's, malformed
// HTTP, and bugs. Never a stack, never HTML.
import type { Socket } from 'node:net'
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { hasZodFastifySchemaValidationErrors } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { explainFailure } from '../db/failures.ts'
import { type ErrorCode, errorStatus, invalidRequest, MusterError } from '../kernel/errors.ts'
import type { Log } from '../kernel/log.ts'

export const errorSchema = z
  .strictObject({
    error: z.strictObject({
      code: z.enum(Object.keys(errorStatus) as [ErrorCode, ...ErrorCode[]]), // Object.keys forgets its literals
      message: z.string(),
      details: z.record(z.string(), z.unknown()).nullable(),
    }),
  })
  .meta({ id: 'Error' })

export type ErrorAnswer = z.infer<typeof errorSchema>

export const toAnswer = (error: MusterError): ErrorAnswer => ({
  error: { code: error.code, message: error.message, details: error.details },
})

export function sendError(reply: FastifyReply, error: MusterError): FastifyReply {
  if (error.retryAfterS !== null) reply.header('retry-after', String(Math.max(1, Math.ceil(error.retryAfterS))))
  return reply
    .code(error.status)
    .type('application/json; charset=utf-8')
    .send(JSON.stringify(toAnswer(error)))
}

export const createErrorHandler =
  (log: Log) =>
  (error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    const known = explain(error)
    if (known.code === 'INTERNAL_ERROR') {
      log.error({ request_id: request.id, route: request.routeOptions?.url, err: error }, 'a request failed')
    } else if (known.code === 'UNAVAILABLE') {
      log.warn({ request_id: request.id, err: known.cause ?? known }, 'a request could not be served')
    }
    return sendError(reply, known)
  }

export function explain(error: unknown): MusterError {
  if (error instanceof MusterError) return error
  if (hasZodFastifySchemaValidationErrors(error)) return explainValidation(error)
  const framework = explainFramework(error)
  if (framework) return framework
  return (
    explainFailure(error) ??
    new MusterError('INTERNAL_ERROR', 'Something went wrong on our side. The request id names it in the log.', {
      cause: error,
    })
  )
}

function explainValidation(error: {
  validation: { instancePath: string; message?: string | undefined }[]
  validationContext?: string | undefined
}): MusterError {
  const part = error.validationContext ?? 'request'
  const issues = error.validation.slice(0, 20).map((issue) => ({
    path: issue.instancePath.replaceAll('/', '.').replace(/^\./, ''),
    message: issue.message ?? 'is not valid',
  }))
  const first = issues[0]
  const where = first?.path ? `${part}.${first.path}` : part
  return invalidRequest(`${where}: ${first?.message ?? 'is not valid'}`, { issues })
}

const FRAMEWORK_CODES: Record<number, { code: ErrorCode; message: string }> = {
  400: { code: 'INVALID_REQUEST', message: 'The request cannot be read.' },
  404: { code: 'NOT_FOUND', message: 'There is nothing at this address.' },
  408: { code: 'REQUEST_TIMEOUT', message: 'The request took too long to arrive.' },
  413: { code: 'PAYLOAD_TOO_LARGE', message: 'The body is larger than 1 MiB.' },
  414: { code: 'INVALID_REQUEST', message: 'The address is too long.' },
  415: { code: 'UNSUPPORTED_MEDIA_TYPE', message: 'Send JSON with "content-type: application/json".' },
}

function explainFramework(error: unknown): MusterError | null {
  if (!(error instanceof Error) || !('code' in error) || !String(error.code).startsWith('FST_')) return null
  const status = (error as FastifyError).statusCode ?? 500
  const known = FRAMEWORK_CODES[status]
  return known ? new MusterError(known.code, known.message, { cause: error }) : null
}

const CLIENT_FAILURES: Record<string, { code: ErrorCode; message: string }> = {
  HPE_HEADER_OVERFLOW: { code: 'HEADERS_TOO_LARGE', message: 'The headers are larger than 16 kB.' },
  ERR_HTTP_REQUEST_TIMEOUT: { code: 'REQUEST_TIMEOUT', message: 'The request took too long to arrive.' },
}

/** What is no HTTP at all never reaches Fastify; it is answered on the bare socket. */
export function answerMalformedHttp(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || socket.destroyed || !socket.writable) {
    socket.destroy()
    return
  }
  const failure = CLIENT_FAILURES[error.code ?? ''] ?? { code: 'INVALID_REQUEST', message: 'This is not valid HTTP.' }
  const known = new MusterError(failure.code as ErrorCode, failure.message)
  const body = JSON.stringify(toAnswer(known))
  socket.end(
    `HTTP/1.1 ${known.status} ${known.code}\r\ncontent-type: application/json; charset=utf-8\r\n` +
      `content-length: ${Buffer.byteLength(body)}\r\nx-content-type-options: nosniff\r\ncache-control: no-store\r\n` +
      `x-request-id: ${crypto.randomUUID()}\r\nconnection: close\r\n\r\n${body}`,
  )
}
