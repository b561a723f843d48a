// Every failure of a request ends here, in one envelope, bugs included. An answer never holds a stack or HTML.
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { explainFailure } from '../../db/failures.ts'
import { type ErrorCode, errorStatus, MusterError } from '../../kernel/errors.ts'
import type { Log } from '../../kernel/log.ts'

export const errorSchema = z.strictObject({
  error: z.strictObject({
    code: z.enum(Object.keys(errorStatus) as [ErrorCode, ...ErrorCode[]]), // Object.keys forgets its literals
    message: z.string(),
    details: z.record(z.string(), z.unknown()).nullable(),
  }),
})

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
      log.warn({ request_id: request.id, reason: reasonOf(known) }, 'a request could not be served')
    }
    return sendError(reply, known)
  }

/** The log line has no stack: while the database is away every request ends here. */
const reasonOf = (error: MusterError): string => (error.cause instanceof Error ? error.cause.message : error.message)

function explain(error: unknown): MusterError {
  if (error instanceof MusterError) return error
  const framework = explainFramework(error)
  if (framework) return framework
  return (
    explainFailure(error) ??
    new MusterError('INTERNAL_ERROR', 'Something went wrong on our side. The request id names it in the log.', {
      cause: error,
    })
  )
}

const FRAMEWORK_CODES: Record<number, { code: ErrorCode; message: string }> = {
  400: { code: 'INVALID_REQUEST', message: 'The request cannot be read.' },
  404: { code: 'NOT_FOUND', message: 'There is nothing at this address.' },
  408: { code: 'REQUEST_TIMEOUT', message: 'The request took too long to arrive.' },
  412: { code: 'PRECONDITION_FAILED', message: 'The file is not in the state that the headers ask for.' },
  413: { code: 'PAYLOAD_TOO_LARGE', message: 'The body is larger than 1 MiB.' },
  414: { code: 'INVALID_REQUEST', message: 'The address is too long.' },
  416: { code: 'RANGE_NOT_SATISFIABLE', message: 'The file has no such range.' },
  415: { code: 'UNSUPPORTED_MEDIA_TYPE', message: 'Send JSON with "content-type: application/json".' },
}

function explainFramework(error: unknown): MusterError | null {
  if (!(error instanceof Error) || !('statusCode' in error || 'status' in error)) return null
  // Fastify and its libraries mark an error of the client with a status of their own.
  const { statusCode, status } = error as FastifyError & { status?: number }
  const known = FRAMEWORK_CODES[statusCode ?? status ?? 500]
  return known ? new MusterError(known.code, known.message, { cause: error }) : null
}
