import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LanguageModelV4FunctionTool, LanguageModelV4Prompt } from '@ai-sdk/provider'
import { estimateInputTokens, estimateOutputTokens } from './estimate-tokens.ts'

const tokensOf = (prompt: LanguageModelV4Prompt, tools: LanguageModelV4FunctionTool[] = []) =>
  estimateInputTokens({ prompt, tools })

test('a token is about four letters, and fewer letters of other scripts', () => {
  assert.equal(estimateOutputTokens('', [], []), 0)
  assert.equal(estimateOutputTokens('four', [], []), 1)
  assert.equal(estimateOutputTokens('four+', [], []), 2)
  assert.equal(estimateOutputTokens('x'.repeat(4_000), [], []), 1_000)
  assert.equal(estimateOutputTokens('日本語の文章です', [], []), 6)
})

test('everything a prompt holds counts', () => {
  const long = 'x'.repeat(400)
  const empty = tokensOf([{ role: 'system', content: '' }])
  const prompts: LanguageModelV4Prompt = [
    { role: 'system', content: long },
    { role: 'user', content: [{ type: 'text', text: long }] },
    { role: 'assistant', content: [{ type: 'text', text: long }] },
    { role: 'assistant', content: [{ type: 'reasoning', text: long }] },
    { role: 'assistant', content: [{ type: 'tool-call', toolCallId: 'c', toolName: '', input: long }] },
    {
      role: 'tool',
      content: [{ type: 'tool-result', toolCallId: 'c', toolName: '', output: { type: 'text', value: long } }],
    },
  ]
  for (const message of prompts) {
    const tokens = tokensOf([message]) - empty
    assert.ok(tokens >= 100 && tokens < 110, `${message.role}: ${tokens}`)
  }
  assert.ok(tokensOf(prompts) >= 600)
})

test('tools and the schema of the answer count', () => {
  const description = 'x'.repeat(400)
  const tool: LanguageModelV4FunctionTool = {
    type: 'function',
    name: 'a',
    description,
    inputSchema: { type: 'object' },
  }
  assert.ok(tokensOf([], [tool]) > 100)
  assert.ok(tokensOf([], [tool, tool]) > 200)
  assert.ok(estimateInputTokens({ prompt: [], tools: [], answerSchema: { name: 'a', schema: { description } } }) > 100)
})

test('a file counts the same, whatever its size', () => {
  const file = (bytes: number): LanguageModelV4Prompt => [
    {
      role: 'user',
      content: [{ type: 'file', mediaType: 'image/png', data: { type: 'data', data: new Uint8Array(bytes) } }],
    },
  ]
  assert.equal(tokensOf(file(10)), tokensOf(file(1_000_000)))
})

test('text, reasoning and calls of an answer count', () => {
  const text = 'x'.repeat(400)
  assert.equal(estimateOutputTokens(text, [{ text }], [{ id: 'c', name: 'abcd', input: text }]), 301)
})

test('a value that is not JSON does not stop an estimate', () => {
  const input: Record<string, unknown> = {}
  input.self = input
  const call = { type: 'tool-call' as const, toolCallId: 'c', toolName: 'abcd', input }
  assert.ok(tokensOf([{ role: 'assistant', content: [call] }]) > 0)
})
