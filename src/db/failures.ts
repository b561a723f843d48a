// Explains the database failures that can happen to any statement. Each store explains its own constraints.
import { invalidRequest, MusterError, unavailable } from '../kernel/errors.ts'

interface PgFailure {
  code: string
  constraint?: string
}

const CONNECTION_CODES = new Set(['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'ENOTFOUND', 'EHOSTUNREACH'])
const CONNECTION_MESSAGES =
  /timeout exceeded when trying to connect|^timeout expired$|Connection terminated|Query read timeout|Client has encountered a connection error|not queryable|Cannot use a pool after calling end/i

export function pgFailure(error: unknown): PgFailure | null {
  if (!(error instanceof Error) || !('code' in error) || typeof error.code !== 'string') return null
  const constraint = 'constraint' in error && typeof error.constraint === 'string' ? error.constraint : undefined
  return constraint === undefined ? { code: error.code } : { code: error.code, constraint }
}

export const isUniqueViolation = (error: unknown, constraint?: string): boolean => {
  const failure = pgFailure(error)
  return failure?.code === '23505' && (constraint === undefined || failure.constraint === constraint)
}

export const isForeignKeyViolation = (error: unknown): boolean => pgFailure(error)?.code === '23503'

/** After a serialisation failure or a deadlock the same work may be tried again. */
export const isRetryable = (error: unknown): boolean => {
  const code = pgFailure(error)?.code
  return code === '40001' || code === '40P01'
}

/** True if the database cannot be reached or has no room right now: the same work may succeed later. */
export const isUnavailable = (error: unknown): boolean => explainFailure(error)?.code === 'UNAVAILABLE'

/** The known failure behind a database error, or null if the error is a bug. */
export function explainFailure(error: unknown): MusterError | null {
  if (error instanceof MusterError) return error
  const code = pgFailure(error)?.code
  const message = error instanceof Error ? error.message : ''
  if ((code && CONNECTION_CODES.has(code)) || CONNECTION_MESSAGES.test(message) || code?.startsWith('08')) {
    return unavailable('The database cannot be reached right now. Try again shortly.', error)
  }
  switch (code?.slice(0, 2)) {
    case '22':
      return invalidRequest('A value in the request cannot be stored.')
    case '53':
      return unavailable('The database is out of room or connections. Try again shortly.', error, 5)
    case '57':
      return unavailable('The database is restarting or took too long. Try again shortly.', error)
    case '40':
    case '55':
      return unavailable('The database is busy with the same rows. Try again shortly.', error)
    default:
      return code === '54001' ? invalidRequest('A value in the request is nested too deeply.') : null
  }
}
