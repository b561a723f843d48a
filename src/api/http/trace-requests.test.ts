import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { test } from 'node:test'
import { createTestApp } from '../../../test/kit/app.ts'
import { atEnd } from '../../../test/kit/at-end.ts'
import { createEgress } from '../../egress/egress.ts'
import { silentLog } from '../../kernel/log.ts'
import { createTracing } from '../../observe/create-tracing.ts'

test('each request is a span of the trace it came with, and the span does not hold the address', async () => {
  const received: string[] = []
  const collector = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    received.push(Buffer.concat(chunks).toString('latin1'))
    response.end('{}')
  })
  await new Promise<void>((resolve) => collector.listen(0, '127.0.0.1', resolve))
  atEnd(async () => collector.close())
  const address = collector.address()
  assert.ok(address && typeof address === 'object')
  const egress = createEgress({ allow: [] })
  atEnd(() => egress.close())
  const tracing = await createTracing({
    targets: [{ url: `http://127.0.0.1:${address.port}/v1/traces`, format: 'json' }],
    fetch: egress.fetch('trusted'),
    serviceName: 'muster',
    version: '0',
    log: silentLog,
  })
  const kit = await createTestApp({ tracer: tracing })
  await kit.app.listen({ port: 0, host: '127.0.0.1' })
  const own = kit.app.server.address()
  assert.ok(own && typeof own === 'object')
  const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
  const url = `http://127.0.0.1:${own.port}/api/invitations/secret-token-in-the-path`
  const answer = await fetch(url, { headers: { traceparent: `00-${traceId}-00f067aa0ba902b7-01` } })
  assert.equal(answer.status, 404)
  await answer.text()
  await tracing.stop()
  const sent = received.join('\n')
  assert.match(sent, /GET \/api\/invitations\/:token/)
  assert.match(sent, /http\.response\.status_code/)
  assert.ok(sent.includes(traceId) || sent.includes(Buffer.from(traceId, 'hex').toString('latin1')))
  assert.ok(!sent.includes('secret-token-in-the-path'))
})
