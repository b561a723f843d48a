// The failures a caller may meet: a stable code, an HTTP status, a message that says what to do, facts in `details`.
// Anything thrown that is not a MusterError is a bug and is answered as INTERNAL_ERROR.

export const errorStatus = {
  INVALID_REQUEST: 400,
  STREAM_NOT_SUPPORTED: 400,
  UNAUTHENTICATED: 401,
  FORBIDDEN: 403,
  NOT_FOUND: 404,
  RUN_NOT_FOUND: 404,
  PROMPT_MISSING: 404,
  METHOD_NOT_ALLOWED: 405,
  REQUEST_TIMEOUT: 408,
  CONFLICT: 409,
  IDEMPOTENCY_MISMATCH: 409,
  PRECONDITION_FAILED: 412,
  PAYLOAD_TOO_LARGE: 413,
  UNSUPPORTED_MEDIA_TYPE: 415,
  RANGE_NOT_SATISFIABLE: 416,
  EXPECTATION_FAILED: 417,
  RATE_LIMITED: 429,
  HEADERS_TOO_LARGE: 431,
  INTERNAL_ERROR: 500,
  UNAVAILABLE: 503,
} as const

export type ErrorCode = keyof typeof errorStatus
export type ErrorDetails = Readonly<Record<string, unknown>>

export class MusterError extends Error {
  readonly code: ErrorCode
  readonly status: number
  readonly details: ErrorDetails | null
  /** Seconds after which trying again makes sense; sent as Retry-After. */
  readonly retryAfterS: number | null

  constructor(
    code: ErrorCode,
    message: string,
    options: { details?: ErrorDetails; retryAfterS?: number; cause?: unknown; status?: number } = {},
  ) {
    super(message, options.cause === undefined ? {} : { cause: options.cause })
    this.name = 'MusterError'
    this.code = code
    this.status = options.status ?? errorStatus[code]
    this.details = options.details ?? null
    this.retryAfterS = options.retryAfterS ?? null
  }
}

export const invalidRequest = (message: string, details?: ErrorDetails): MusterError =>
  new MusterError('INVALID_REQUEST', message, details ? { details } : {})

export const unauthenticated = (
  message = 'Send a valid key as "Authorization: Bearer <key>", or sign in.',
): MusterError => new MusterError('UNAUTHENTICATED', message)

export const forbidden = (message: string, details?: ErrorDetails): MusterError =>
  new MusterError('FORBIDDEN', message, details ? { details } : {})

/** The message never names the id: an id of another project must be answered exactly like an unknown one. */
export const notFound = (what: string): MusterError =>
  new MusterError('NOT_FOUND', `There is no such ${what} here, or these credentials cannot see it.`)

export const runNotFound = (): MusterError =>
  new MusterError('RUN_NOT_FOUND', 'There is no such run here, or these credentials cannot see it.')

/** A request that names a missing prompt is answered 404; a run whose own request was sound is answered 422. */
export const promptMissing = (
  promptId: string,
  variantId: string,
  { isDuringRun = false }: { isDuringRun?: boolean } = {},
): MusterError =>
  new MusterError(
    'PROMPT_MISSING',
    `The project has no prompt "${promptId}" in the variant "${variantId}". Save it in the prompt library, or roll it back there.`,
    { details: { prompt_id: promptId, variant_id: variantId }, ...(isDuringRun ? { status: 422 } : {}) },
  )

export const conflict = (message: string, details?: ErrorDetails): MusterError =>
  new MusterError('CONFLICT', message, details ? { details } : {})

export const unavailable = (message: string, cause?: unknown, retryAfterS = 1): MusterError =>
  new MusterError('UNAVAILABLE', message, { retryAfterS, cause })

export const rateLimited = (retryAfterS: number): MusterError =>
  new MusterError('RATE_LIMITED', `Too many requests. Try again in ${retryAfterS} s.`, { retryAfterS })
