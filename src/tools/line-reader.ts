/** A line that was too long to keep: its beginning, its end, and its length. */
export interface LongLine {
  head: string
  tail: string
  bytes: number
}

const KEPT_BYTES = 512

/** Cuts a byte stream into lines. A line that is longer than `maxBytes` is counted and dropped while it arrives. */
export function createLineReader(
  maxBytes: number,
  on: { line(text: string): void; longLine(line: LongLine): void },
): (chunk: Buffer) => void {
  let parts: Buffer[] = []
  let size = 0
  /** Set once the line is too long; `parts` then holds only its end. */
  let head: Buffer | null = null

  function add(part: Buffer): void {
    size += part.length
    parts.push(part)
    if (size <= maxBytes) return
    const kept = Buffer.concat(parts)
    head ??= Buffer.from(kept.subarray(0, KEPT_BYTES))
    parts = [Buffer.from(kept.subarray(-KEPT_BYTES))]
  }

  function end(): void {
    const bytes = Buffer.concat(parts)
    if (head === null) on.line(bytes.toString('utf8'))
    else on.longLine({ head: head.toString('utf8'), tail: bytes.toString('utf8'), bytes: size })
    parts = []
    size = 0
    head = null
  }

  return (chunk) => {
    let from = 0
    for (let at = chunk.indexOf(10); at !== -1; at = chunk.indexOf(10, from)) {
      add(chunk.subarray(from, at))
      end()
      from = at + 1
    }
    if (from < chunk.length) add(chunk.subarray(from))
  }
}
