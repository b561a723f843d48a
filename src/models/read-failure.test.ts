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

const reasons: [what: string, error: unknown, reason: 'quota' | 'context' | undefined, isRetryable?: boolean][] = [
  ['OpenAI, quota', openai(429, { message: 'You exceeded your current quota.', code: 'insufficient_quota' }), 'quota'],
  ['OpenAI, rate limit', openai(429, { message: 'Rate limit reached.', code: 'rate_limit_exceeded' }), undefined],
  ['any, 413', openai(413, { message: 'No.' }), 'context'],
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
