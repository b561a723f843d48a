import type { FastifyRequest } from 'fastify'
import { MusterError } from '../../kernel/errors.ts'
import { CONTENT_TYPES, type StreamFormat } from './sse.ts'

interface Range {
  type: string
  quality: number
}

/**
 * The form that the caller prefers among `offered`, else the first. A named type wins over a type that only a wildcard
 * covers. Throws STREAM_NOT_SUPPORTED if the caller accepts none.
 */
export function streamFormat<Format extends StreamFormat>(
  { headers }: Pick<FastifyRequest, 'headers'>,
  offered: readonly Format[],
): Format {
  const ranges = rangesOf(headers.accept ?? '*/*')
  const [best] = offered
    .map((format) => ({ format, ...wishFor(CONTENT_TYPES[format], ranges) }))
    .filter(({ quality }) => quality > 0)
    .toSorted((a, b) => b.quality - a.quality || b.exactness - a.exactness)
  if (best) return best.format
  const types = offered.map((format) => CONTENT_TYPES[format]).join(' or ')
  throw new MusterError('STREAM_NOT_SUPPORTED', `The stream is ${types}; the Accept header allows no such type.`)
}

function rangesOf(accept: string): Range[] {
  return accept
    .toLowerCase()
    .split(',')
    .map((range) => {
      const [type = '', ...parameters] = range.split(';').map((part) => part.trim())
      const quality = parameters.find((parameter) => /^q=[\d.]+$/.test(parameter))?.slice(2)
      return { type, quality: quality === undefined ? 1 : Number(quality) }
    })
}

/** The most exact range that covers the type decides, as HTTP says. */
function wishFor(type: string, ranges: readonly Range[]): { quality: number; exactness: number } {
  const covering = ['*/*', `${type.split('/')[0]}/*`, type]
  for (let exactness = covering.length - 1; exactness >= 0; exactness--) {
    const found = ranges.find((range) => range.type === covering[exactness])
    if (found) return { quality: found.quality || 0, exactness }
  }
  return { quality: 0, exactness: 0 }
}
