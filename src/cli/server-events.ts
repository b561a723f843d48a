// A reader of server-sent events, as the HTML standard defines them.

export interface ServerEvent {
  /** Null for an event without an id, which a reader cannot come back to. */
  id: string | null
  event: string
  data: string
}

/** Events as they become complete; an event that is cut off by the end of the stream is dropped, as the standard says. */
export async function* readServerEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<ServerEvent> {
  let fields: { id: string | null; event: string; data: string[] } = emptyFields()
  for await (const line of readLines(body)) {
    if (line === '') {
      const { id, event, data } = fields
      fields = emptyFields()
      if (data.length > 0) yield { id, event: event || 'message', data: data.join('\n') }
      continue
    }
    const colon = line.indexOf(':')
    // A line that begins with a colon is a comment: the server sends one to keep the connection alive.
    if (colon === 0) continue
    const name = colon === -1 ? line : line.slice(0, colon)
    const value = colon === -1 ? '' : line.slice(colon + 1).replace(/^ /, '')
    if (name === 'data') fields.data.push(value)
    else if (name === 'event') fields.event = value
    else if (name === 'id' && !value.includes('\0')) fields.id = value
  }
}

const emptyFields = () => ({ id: null, event: '', data: [] })

/** Lines end with a line feed, a carriage return or both. A line without an end is not a whole one, and is dropped. */
async function* readLines(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let begun: string[] = []
  let hasReturned = false
  for await (const bytes of body) {
    let piece = decoder.decode(bytes, { stream: true })
    if (piece === '') continue
    // The carriage return at the end of the last piece may have been the first half of a line end.
    if (hasReturned && piece.startsWith('\n')) piece = piece.slice(1)
    hasReturned = piece.endsWith('\r')
    const [first = '', ...others] = piece.split(/\r\n|\n|\r/)
    begun.push(first)
    for (const other of others) {
      yield begun.join('')
      begun = [other]
    }
  }
}
