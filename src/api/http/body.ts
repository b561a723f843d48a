import { setImmediate as giveWay } from 'node:timers/promises'
import { TextDecoder } from 'node:util'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { invalidRequest, MusterError } from '../../kernel/errors.ts'
import { JsonRefused, parseStrictJson } from '../../kernel/strict-json.ts'

export const BODY_LIMIT = 1_048_576
/** A body of this size takes milliseconds to parse, so other requests come first. */
const LARGE_BODY = 65_536

declare module 'fastify' {
  interface FastifyContextConfig {
    /** True if the body is given as the bytes that were sent, for a signature over them; `parseBody` reads them. */
    keepsRawBody?: boolean
  }
}

/** JSON in UTF-8 is the only accepted body. Another media type is 415, and a body that is not clean JSON is 400. */
export function acceptJsonOnly(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser(
    'application/json',
    { parseAs: 'buffer', bodyLimit: BODY_LIMIT },
    async (request: FastifyRequest, body: Buffer) => {
      requireUtf8(request.headers['content-type'] ?? '')
      requirePlain(request.headers['content-encoding'])
      if (request.routeOptions.config.keepsRawBody) return body
      if (body.length === 0) return undefined
      const parsed = parseBody(body)
      if (body.length > LARGE_BODY) await giveWay()
      return parsed
    },
  )
}

function requireUtf8(contentType: string): void {
  const charset = /;\s*charset\s*=\s*"?([^\s;"]+)/i.exec(contentType)?.[1]?.toLowerCase()
  if (charset && charset !== 'utf-8' && charset !== 'utf8') {
    throw new MusterError('UNSUPPORTED_MEDIA_TYPE', 'Send JSON in UTF-8.')
  }
}

function requirePlain(encoding: string | undefined): void {
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    throw new MusterError('UNSUPPORTED_MEDIA_TYPE', 'Send the body as it is, without a content encoding.')
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: false })

export function parseBody(body: Buffer): unknown {
  try {
    return parseStrictJson(utf8.decode(body))
  } catch (error) {
    if (error instanceof JsonRefused) throw invalidRequest(error.message)
    throw invalidRequest('The body is not valid UTF-8.')
  }
}
