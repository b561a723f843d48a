import type { Readable } from 'node:stream'

/** The feeds of changes do not end: a call of the kit reads the beginning of such an answer, and leaves. */
export function isEndless(route: string): boolean {
  const [method, address = ''] = route.split(' ')
  // As the server sees it: "/api/projects/../events" is "/api/events".
  const { pathname } = new URL(address, 'http://localhost')
  return method === 'GET' && /^\/api\/(projects\/[^/]+\/)?events$/.test(pathname)
}

/** The first piece of an answer, or all of it if it ends before. */
export async function beginningOf(answer: ReadableStream<Uint8Array> | Readable | null): Promise<string> {
  // Leaving the loop cancels the stream.
  for await (const piece of answer ?? []) return Buffer.from(piece).toString()
  return ''
}
