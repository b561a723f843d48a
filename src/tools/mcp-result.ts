import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js'

/** Returns structured content unchanged, and any other content as text. Throws the text of an error result. */
export function readMcpResult(result: CallToolResult): unknown {
  const text = result.content.map(partText).join('\n')
  if (result.isError) throw new Error(text || 'The tool failed without saying why.')
  return result.structuredContent ?? text
}

type Part = CallToolResult['content'][number]

function partText(part: Part): string {
  switch (part.type) {
    case 'text':
      return part.text
    case 'image':
    case 'audio':
      return described(part.type, part.mimeType, part.data)
    case 'resource_link':
      return `[link to ${part.name}: ${part.uri}]`
    case 'resource':
      return 'text' in part.resource
        ? `[${part.resource.uri}]\n${part.resource.text}`
        : described(part.resource.uri, part.resource.mimeType ?? 'of unknown type', part.resource.blob)
  }
}

const described = (what: string, type: string, base64: string): string =>
  `[${what}, ${type}, ${Buffer.byteLength(base64, 'base64')} bytes; not shown]`
