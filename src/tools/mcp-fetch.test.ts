import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { test } from 'node:test'
import { createGzip } from 'node:zlib'
import { serveLocally } from '../../test/kit/local-server.ts'
import { createEgress } from '../egress/egress.ts'
import { createMcpFetch } from './mcp-fetch.ts'

const MAX_BYTES = 1_000_000

/** Answers with a small gzip that never ends: a client that wants all of it waits for ever. */
async function bombed(t: Parameters<typeof serveLocally>[0], { status, type }: { status: number; type: string }) {
  const egress = createEgress({ allow: [] })
  t.after(() => egress.close())
  const url = await serveLocally(t, async (_, response) => {
    response.writeHead(status, { 'content-type': type, 'content-encoding': 'gzip' })
    const zeros = Buffer.alloc(65_536, 0x20)
    const endless = Readable.from(
      (function* () {
        for (;;) yield zeros
      })(),
    )
    await pipeline(endless, createGzip(), response)
  })
  const lost: string[] = []
  const fetch = createMcpFetch(egress.fetch('trusted'), {
    maxBytes: MAX_BYTES,
    onLost: (id, reason) => lost.push(`${id}: ${reason}`),
  })
  const body = JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'tools/list' })
  return { response: await fetch(url, { method: 'POST', body }), lost }
}

for (const [status, type] of [
  [200, 'application/json'],
  [200, 'text/event-stream'],
  [201, 'application/json'],
] as const) {
  test(`an answer of status ${status} as ${type} is refused past its bound, as it is unpacked`, async (t) => {
    const { response } = await bombed(t, { status, type })
    await assert.rejects(response.text(), new RegExp(`more than ${MAX_BYTES} bytes`))
  })
}

for (const status of [400, 401, 404, 429, 500, 503]) {
  test(`of an answer of status ${status} only the beginning is read, as it is unpacked`, async (t) => {
    const { response } = await bombed(t, { status, type: 'text/plain' })
    assert.equal(response.status, status)
    assert.equal((await response.text()).length, 65_536)
  })
}
