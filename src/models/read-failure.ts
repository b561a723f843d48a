// The failure of a model call, as one sentence and one decision: whether another try may succeed.

import { APICallError } from '@ai-sdk/provider'
import { findRefusal } from '../egress/refused.ts'
import { cutText } from '../kernel/cut-text.ts'
import { mask, maskShapes } from '../observe/secret-shapes.ts'

export interface CallFailure {
  isRetryable: boolean
  retryAfterMs: number | null
  /** quota: the quota is used up · context: the request is too long for the model. */
  reason?: 'quota' | 'context' | undefined
  message: string
  /** True if the provider refused the request or never got it, so that the request costs nothing. */
  isFree: boolean
}

export interface FailureSource {
  provider: string
  /** Values that must not be in the message, the provider's key above all. */
  secrets: readonly string[]
  /** `stream` means that the answer had begun, so that a failure is most likely one of the connection. */
  phase: 'request' | 'stream'
}

export function readFailure(error: unknown, source: FailureSource): CallFailure {
  const { provider, phase } = source
  const refusal = findRefusal(error)
  if (refusal) return { ...failure(source, false, `${provider} cannot be called: ${refusal.message}`), isFree: true }
  const status = statusOf(error)
  if (status !== null && status >= 300) {
    return {
      ...failure(source, isRetryableStatus(status), `${provider} answered ${status}: ${saidBy(error)}`),
      retryAfterMs: retryAfterOf(error),
      reason: reasonOf(error, status),
      isFree: phase === 'request',
    }
  }
  const code = networkCodeOf(error)
  if (phase === 'stream') {
    const isRetryable = !isPermanent(error)
    const broken = failure(source, isRetryable, `${provider} broke off its answer: ${code ?? saidBy(error)}`)
    return { ...broken, reason: reasonOf(error, null) }
  }
  // The message has only the code: the text of a connection error holds the address behind the name.
  if (code && AFTER_SENDING.test(code)) return failure(source, true, `${provider} did not answer: ${code}`)
  if (code) return { ...failure(source, true, `${provider} could not be reached: ${code}`), isFree: true }
  const isRetryable = isTransient(error)
  return { ...failure(source, isRetryable, `${provider} could not be called: ${saidBy(error)}`), isFree: !isRetryable }
}

function failure(source: FailureSource, isRetryable: boolean, sentence: string): CallFailure {
  return { isRetryable, retryAfterMs: null, message: asSentence(sentence, source.secrets), isFree: false }
}

function isRetryableStatus(status: number): boolean {
  return status === 408 || status === 429 || status >= 500
}

/** Words in which the wires of OpenAI, Anthropic, Google and servers like them say that a request is too long. */
const TOO_LONG =
  /context_length_exceeded|string_above_max_length|prompt is too long|input is too long|input length and `?max_tokens`? exceed|maximum context length|(?:exceeds?|greater than) (?:the )?(?:model'?s? )?(?:available |maximum )?context|context (?:window|size|length) (?:is )?exceed|maximum prompt length is|reduce the length of the messages|exceeded model token limit|prompt token count[^"]{0,80}exceeds|input token count[^"]{0,80}exceeds|too many (?:input )?tokens|request_too_large|context_window_exceeded/i
const QUOTA_USED_UP =
  /insufficient_quota|billing_hard_limit_reached|billing_not_active|billing_error|credit balance is too low|reached your specified API usage limits|exceeded your current quota|quotaId[^,}]{0,120}PerDay/i
/** Google speaks of a quota, too, if the rate of a minute is exceeded. */
const RATE_OF_A_MINUTE = /quotaId[^,}]{0,120}PerMinute/i

/** Status 413 is a request that is too long in bytes, which a shorter history mends, too. */
function reasonOf(error: unknown, status: number | null): 'quota' | 'context' | undefined {
  const body = APICallError.isInstance(error) ? (error.responseBody ?? '').slice(0, MAX_BODY_READ) : ''
  const words = [codesOf(error).join(' '), saidBy(error), body].join(' ')
  if (status === 402) return 'quota'
  if ((status === null || (status >= 400 && status < 500)) && isQuotaUsedUp(words)) return 'quota'
  if (status === 413) return 'context'
  return (status === null || status === 400 || status === 422) && TOO_LONG.test(words) ? 'context' : undefined
}

const MAX_BODY_READ = 20_000

const isQuotaUsedUp = (words: string): boolean =>
  QUOTA_USED_UP.test(words) && (!RATE_OF_A_MINUTE.test(words) || /quotaId[^,}]{0,120}PerDay/i.test(words))

/** The status of an HTTP answer, of google-auth-library's errors, or of an error event that names one. */
function statusOf(error: unknown): number | null {
  if (APICallError.isInstance(error)) return error.statusCode ?? null
  for (const candidate of [field(error, 'status'), field(error, 'code'), field(field(error, 'error'), 'code')]) {
    if (typeof candidate === 'number' && candidate >= 400 && candidate < 600) return candidate
  }
  return null
}

function saidBy(error: unknown): string {
  const own = field(error, 'message') ?? field(field(error, 'error'), 'message')
  if (typeof own === 'string' && own.trim() !== '') return own
  if (APICallError.isInstance(error) && error.responseBody?.trim()) return error.responseBody
  if (typeof error === 'string' && error.trim() !== '') return error
  const named = field(error, 'type') ?? field(error, 'name')
  return typeof named === 'string' ? named : 'it gave no reason'
}

/** The connection was lost when the request was on its way, so the provider may have worked on the request. */
const AFTER_SENDING = /^(?:ECONNRESET|EPIPE|ETIMEDOUT|UND_ERR_(?:SOCKET|HEADERS_TIMEOUT|BODY_TIMEOUT))$/
const NETWORK_CODE = /^(?:E[A-Z_]{3,}|UND_ERR_[A-Z_]+)$/

function networkCodeOf(error: unknown): string | null {
  let current = error
  for (let depth = 0; depth < 5 && typeof current === 'object' && current !== null; depth += 1) {
    const code = field(current, 'code')
    if (typeof code === 'string' && NETWORK_CODE.test(code)) return code
    current = field(current, 'cause')
  }
  return null
}

const TRANSIENT_NAMES = new Set([
  'AbortError',
  'TimeoutError',
  'AI_JSONParseError',
  'AI_TypeValidationError',
  'AI_InvalidResponseDataError',
  'AI_EmptyResponseBodyError',
])

/** Before an answer began, only failures that are known to pass are retried: a wrong setting or a bug stays wrong. */
function isTransient(error: unknown): boolean {
  if (APICallError.isInstance(error)) return error.statusCode !== undefined || error.isRetryable
  const name = field(error, 'name')
  if (typeof name === 'string' && TRANSIENT_NAMES.has(name)) return true
  // The SDK throws this for a first event that is no JSON.
  return field(error, 'message') === 'Expected a normalized Anthropic stream error'
}

const PERMANENT =
  /invalid_(?:request|prompt|api_key)|authentication|permission|not_found|too_large|context_length|insufficient_quota|content_(?:filter|policy)/

/** Within an answer, only failures that the provider itself calls permanent are not retried. */
function isPermanent(error: unknown): boolean {
  return codesOf(error).some((word) => PERMANENT.test(word))
}

/** The words by which an error event names its kind. */
function codesOf(error: unknown): string[] {
  const inner = field(error, 'error')
  const words = [field(error, 'type'), field(error, 'code'), field(inner, 'type'), field(inner, 'code')]
  return words.filter((word) => typeof word === 'string')
}

function retryAfterOf(error: unknown): number | null {
  if (!APICallError.isInstance(error)) return null
  const headers = error.responseHeaders ?? {}
  const exact = headers['retry-after-ms']?.trim() ?? ''
  if (NUMBER.test(exact)) return waitOf(Number(exact))
  const asked = headers['retry-after']?.trim() ?? ''
  if (NUMBER.test(asked)) return waitOf(Number(asked) * 1_000)
  // The parser takes numbers and lists for dates as well.
  const at = /[A-Za-z]{3}|^\d{4}-/.test(asked) ? Date.parse(asked) : Number.NaN
  if (!Number.isNaN(at)) return waitOf(Math.max(0, at - Date.now()))
  // Google gives the delay in the body only.
  const inBody = /"retryDelay"\s*:\s*"(\d{1,9}(?:\.\d{1,9})?)s"/.exec(error.responseBody ?? '')
  return inBody ? Math.ceil(Number(inBody[1]) * 1_000) : null
}

const NUMBER = /^\d+(?:\.\d+)?$/
/** A number of any size is a wait, and stays a number in JSON. */
const MAX_WAIT_MS = 31_536_000_000
const waitOf = (ms: number): number => Math.min(Math.ceil(ms), MAX_WAIT_MS)

const LONGEST = 500

function asSentence(text: string, secrets: readonly string[]): string {
  let clean = text
  for (const secret of secrets) if (secret.length >= 4) clean = clean.replaceAll(secret, mask)
  // The database refuses NUL and lone surrogates, and no terminal should obey what a provider says.
  clean = cutText(
    maskShapes(clean.toWellFormed())
      .replace(/[\s\p{Cc}]+/gu, ' ')
      .trim(),
    LONGEST,
    '…',
  )
  return /[.!?…]$/.test(clean) ? clean : `${clean}.`
}

function field(value: unknown, name: string): unknown {
  // The cast gives access to one field of a value of unknown shape.
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined
}
