import assert from 'node:assert/strict'
import { test } from 'node:test'
import { APICallError } from '@ai-sdk/provider'
import { readFailure } from './read-failure.ts'

const read = (error: unknown, phase: 'request' | 'stream' = 'request') =>
  readFailure(error, { provider: 'p', secrets: [], phase })

function answered(statusCode: number, body: object, message = 'No.'): APICallError {
  const responseBody = JSON.stringify(body)
  return new APICallError({ message, url: 'http://p', requestBodyValues: {}, statusCode, responseBody })
}

const openai = (status: number, error: Record<string, unknown>) => answered(status, { error }, String(error.message))
const anthropic = (status: number, type: string, message: string) =>
  answered(status, { type: 'error', error: { type, message } }, message)
const google = (status: number, message: string) => answered(status, { error: { code: status, message } }, message)

const quotaOfGoogle = (quotaId: string) =>
  answered(
    429,
    {
      error: {
        code: 429,
        status: 'RESOURCE_EXHAUSTED',
        message: 'You exceeded your current quota, please check your plan and billing details.',
        details: [{ '@type': 'type.googleapis.com/google.rpc.QuotaFailure', violations: [{ quotaId }] }],
      },
    },
    'You exceeded your current quota, please check your plan and billing details.',
  )

const reasons: [what: string, error: unknown, reason: 'quota' | 'context' | undefined, isRetryable?: boolean][] = [
  ['OpenAI, quota', openai(429, { message: 'You exceeded your current quota.', code: 'insufficient_quota' }), 'quota'],
  ['OpenAI, rate limit', openai(429, { message: 'Rate limit reached.', code: 'rate_limit_exceeded' }), undefined],
  ['any, 413', openai(413, { message: 'No.' }), 'context'],
  ['OpenAI, quota as 403', openai(403, { message: 'No.', code: 'insufficient_quota' }), 'quota'],
  ['any, 402', openai(402, { message: 'Payment required.' }), 'quota'],
  [
    'Anthropic, credit',
    anthropic(400, 'invalid_request_error', 'Your credit balance is too low to access it.'),
    'quota',
  ],
  [
    'OpenAI, context',
    openai(400, { message: "This model's maximum context length is 8192 tokens.", code: 'context_length_exceeded' }),
    'context',
  ],
  [
    'vLLM, context',
    openai(400, { message: "This model's maximum context length is 4096 tokens. However, you" }),
    'context',
  ],
  [
    'Anthropic, context',
    anthropic(400, 'invalid_request_error', 'prompt is too long: 208310 tokens > 200000'),
    'context',
  ],
  ['Anthropic, bytes', anthropic(413, 'request_too_large', 'Request exceeds the maximum size'), 'context'],
  [
    'Google, context',
    google(400, 'The input token count (1200000) exceeds the maximum number of tokens allowed'),
    'context',
  ],
  ['llama.cpp, context', openai(400, { message: 'the request exceeds the available context size' }), 'context'],
  [
    'xAI, context',
    openai(400, { message: "This model's maximum prompt length is 131072 but the request contains 537812 tokens." }),
    'context',
  ],
  ['Groq, context', openai(400, { message: 'Please reduce the length of the messages or completion.' }), 'context'],
  ['LM Studio, context', openai(400, { message: 'The prompt is greater than the context length.' }), 'context'],
  ['MiniMax, context', openai(400, { message: 'context window exceeds limit' }), 'context'],
  [
    'Anthropic, usage limit',
    anthropic(400, 'invalid_request_error', 'You have reached your specified API usage limits.'),
    'quota',
  ],
  ['Google, quota of the plan', google(429, 'You exceeded your current quota, please check your plan.'), 'quota'],
  ['Google, quota of the day', quotaOfGoogle('GenerateRequestsPerDayPerProjectPerModel-FreeTier'), 'quota'],
  ['Google, rate of a minute', quotaOfGoogle('GenerateRequestsPerMinutePerProjectPerModel'), undefined],
  ['Google, no quota named', google(429, 'Resource has been exhausted (e.g. check quota).'), undefined],
  ['another 400', openai(400, { message: 'The temperature must be below 2.' }), undefined],
  ['a 500 that talks of quota', openai(500, { message: 'insufficient_quota' }), undefined],
]
for (const [what, error, reason] of reasons) {
  test(`${what}: ${reason ?? 'no reason of its own'}`, () => assert.equal(read(error).reason, reason))
}

test('an error event within the answer tells its reason, too', () => {
  assert.equal(read({ type: 'error', error: { code: 'insufficient_quota', message: 'No.' } }, 'stream').reason, 'quota')
  assert.equal(read({ error: { type: 'x', message: 'prompt is too long' } }, 'stream').reason, 'context')
  assert.equal(read({ error: { type: 'overloaded_error', message: 'Overloaded' } }, 'stream').reason, undefined)
})

const YEAR_MS = 31_536_000_000
const waits: [headers: Record<string, string>, retryAfterMs: number | null][] = [
  [{ 'retry-after': '7200' }, 7_200_000],
  [{ 'retry-after': '0.5' }, 500],
  [{ 'retry-after': '9'.repeat(400) }, YEAR_MS],
  [{ 'retry-after-ms': '1500', 'retry-after': '9' }, 1_500],
  [{ 'retry-after-ms': 'Infinity', 'retry-after': '9' }, 9_000],
  [{ 'retry-after-ms': '-1', 'retry-after': '9' }, 9_000],
  [{ 'retry-after': 'Wed, 21 Oct 2015 07:28:00 GMT' }, 0],
  [{ 'retry-after': 'Wed, 21 Oct 9999 07:28:00 GMT' }, YEAR_MS],
  ...['-5', 'soon', '12,5', '10, 20', '1e3', '', ' '].map((asked): [Record<string, string>, null] => [
    { 'retry-after': asked },
    null,
  ]),
]
for (const [responseHeaders, retryAfterMs] of waits) {
  test(`the wait asked for by ${JSON.stringify(responseHeaders).slice(0, 60)}`, () => {
    const error = new APICallError({ message: 'x', url: 'x', requestBodyValues: {}, statusCode: 503, responseHeaders })
    assert.equal(read(error).retryAfterMs, retryAfterMs)
  })
}

test('the message has no character that the database refuses or a terminal obeys', () => {
  const { message } = read(answered(503, {}, 'a\u0000b \ud800 \u001b[31mred'))
  assert.equal(message, 'p answered 503: a b \ufffd [31mred.')
})

test('every other 4xx is final', () => {
  for (const status of [400, 401, 403, 404, 405, 409, 410, 422, 423, 424, 425, 451]) {
    const { isRetryable, reason } = read(answered(status, {}, 'No.'))
    assert.deepEqual([status, isRetryable, reason], [status, false, undefined])
  }
})
