// Estimated token counts, for calls without counts of the provider: a quarter of the UTF-8 bytes. This does not
// undercount scripts whose characters are a token each. Real counts differ by some ten percent.
import type { LanguageModelV4FunctionTool, LanguageModelV4Message, LanguageModelV4Prompt } from '@ai-sdk/provider'
import type { ModelRequest, ReasoningPart, RequestedCall } from '../kernel/model-call.ts'

const BYTES_PER_TOKEN = 4
/** Providers add a role and separators to every message. */
const BYTES_PER_MESSAGE = 16
/** The approximate cost of an image or a page of a document, whatever its bytes. */
const BYTES_PER_FILE = 4_000

export function estimateInputTokens(request: Pick<ModelRequest, 'prompt' | 'tools' | 'answerSchema'>): number {
  let bytes = promptBytes(request.prompt)
  for (const tool of request.tools) bytes += toolBytes(tool)
  if (request.answerSchema) bytes += jsonBytes(request.answerSchema)
  return toTokens(bytes)
}

export function estimateOutputTokens(
  text: string,
  reasoning: readonly ReasoningPart[],
  calls: readonly RequestedCall[],
): number {
  let bytes = Buffer.byteLength(text)
  for (const part of reasoning) bytes += Buffer.byteLength(part.text)
  for (const call of calls) bytes += Buffer.byteLength(call.name) + Buffer.byteLength(call.input)
  return toTokens(bytes)
}

const toTokens = (bytes: number): number => Math.ceil(bytes / BYTES_PER_TOKEN)

function promptBytes(prompt: LanguageModelV4Prompt): number {
  let bytes = 0
  for (const message of prompt) bytes += BYTES_PER_MESSAGE + messageBytes(message)
  return bytes
}

function messageBytes(message: LanguageModelV4Message): number {
  if (message.role === 'system') return Buffer.byteLength(message.content)
  let bytes = 0
  for (const part of message.content) {
    switch (part.type) {
      case 'text':
      case 'reasoning':
        bytes += Buffer.byteLength(part.text)
        break
      case 'tool-call':
        bytes += Buffer.byteLength(part.toolName) + jsonBytes(part.input)
        break
      case 'tool-result':
        bytes += Buffer.byteLength(part.toolName) + jsonBytes(part.output)
        break
      case 'file':
      case 'reasoning-file':
        bytes += BYTES_PER_FILE
        break
      case 'custom':
      case 'tool-approval-response':
        break
    }
  }
  return bytes
}

/** A run sends the same tools with every step, so their schemas are serialised once. */
const toolSizes = new WeakMap<LanguageModelV4FunctionTool, number>()

function toolBytes(tool: LanguageModelV4FunctionTool): number {
  const known = toolSizes.get(tool)
  if (known !== undefined) return known
  const bytes = jsonBytes([tool.name, tool.description, tool.inputSchema])
  toolSizes.set(tool, bytes)
  return bytes
}

/** An estimate is made for a call that has failed already, so a value that is no JSON must not fail the estimate. */
function jsonBytes(value: unknown): number {
  if (typeof value === 'string') return Buffer.byteLength(value)
  try {
    return Buffer.byteLength(JSON.stringify(value) ?? '')
  } catch {
    return 0
  }
}
