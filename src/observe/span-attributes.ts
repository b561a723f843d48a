import type { Redactor } from './redact.ts'
import type { SpanAttributes } from './tracing.ts'

/**
 * The last part of an attribute's name shows whether it is content, in the vocabularies of OpenTelemetry, the AI SDK
 * and OpenInference: `gen_ai.input.messages` is content, `gen_ai.usage.input_tokens` is not.
 */
const contentParts = new Set([
  'args',
  'arguments',
  'body',
  'completion',
  'content',
  'definitions',
  'input',
  'instructions',
  'messages',
  'object',
  'output',
  'prompt',
  'reasoning',
  'result',
  'results',
  'system_instructions',
  'text',
  'toolcalls',
  'tool_calls',
  'value',
  'values',
])

type PlainAttributes = Record<string, string | number | boolean | string[]>

/** The attributes of a span that may be sent: no content, and no secrets. */
export function presentAttributes(attributes: SpanAttributes, redactor: Redactor): PlainAttributes {
  const present: PlainAttributes = {}
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined) continue
    if (isContent(name)) continue
    // The value is cleaned within an object, so that a secret field's name counts too.
    const cleaned = redactor.clean({ [name]: value }) as PlainAttributes
    Object.assign(present, cleaned)
  }
  return present
}

function isContent(name: string): boolean {
  return contentParts.has(name.split('.').at(-1)?.toLowerCase() ?? '')
}
