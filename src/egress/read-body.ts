/** Reads at most `maxBytes` of a body, counted after decompression, and drops the connection if the body is longer. */
export async function readBody(
  response: { readonly body: ReadableStream<Uint8Array> | null },
  maxBytes: number,
): Promise<{ bytes: Buffer; truncated: boolean }> {
  if (response.body === null) return { bytes: Buffer.alloc(0), truncated: false }
  const chunks: Uint8Array[] = []
  let size = 0
  // Leaving the loop early cancels the stream.
  for await (const chunk of response.body) {
    chunks.push(chunk)
    size += chunk.byteLength
    if (size > maxBytes) break
  }
  return { bytes: Buffer.concat(chunks).subarray(0, maxBytes), truncated: size > maxBytes }
}
