import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { test } from 'node:test'
import { isListening } from './is-listening.ts'

test('a port is listened on until its server is closed', async () => {
  const server = createServer((socket) => socket.destroy()).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo // a TCP server that listens has one
  assert.equal(await isListening(port, 1_000), true)
  server.close()
  await once(server, 'close')
  assert.equal(await isListening(port, 1_000), false)
})
