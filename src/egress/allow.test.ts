import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseAllow } from './allow.ts'

test('a name opens that name and port, whatever it resolves to, and no similar name', () => {
  const allow = parseAllow(['ollama.local:11434', 'Intranet.Example', ' spaced:1 '])
  const cases: [string, number, boolean][] = [
    ['ollama.local', 11_434, true],
    ['OLLAMA.local.', 11_434, true],
    ['ollama.local', 80, false],
    ['xollama.local', 11_434, false],
    ['ollama.local.evil.com', 11_434, false],
    ['intranet.example', 80, true],
    ['intranet.example', 443, true],
    ['sub.intranet.example', 80, false],
    ['spaced', 1, true],
  ]
  for (const [name, port, allowed] of cases) assert.equal(allow.hasName(name, port), allowed, `${name}:${port}`)
  assert.equal(allow.hasAddress('127.0.0.1', 11_434), false)
})

test('an address or a range opens its addresses, and only the port it names', () => {
  const allow = parseAllow(['127.0.0.1:8080', '10.2.0.0/16', '[::1]:9090', 'fd00::/8', '192.168.1.5', 'fe80::1'])
  const cases: [string, number, boolean][] = [
    ['127.0.0.1', 8080, true],
    ['127.0.0.1', 8081, false],
    ['127.0.0.2', 8080, false],
    ['10.2.255.1', 1, true],
    ['10.3.0.1', 1, false],
    ['::1', 9090, true],
    ['::1', 9091, false],
    ['::ffff:127.0.0.1', 8080, false],
    ['fd12::1', 443, true],
    ['fe80::1', 443, true],
    ['fe80::2', 443, false],
    ['192.168.1.5', 22, true],
    ['192.168.1.6', 22, false],
  ]
  for (const [address, port, allowed] of cases)
    assert.equal(allow.hasAddress(address, port), allowed, `${address} ${port}`)
  assert.equal(allow.hasName('127.0.0.1', 8080), false)
})

test('an empty list opens nothing, and a malformed entry is refused by its text', () => {
  const none = parseAllow([])
  assert.equal(none.hasName('localhost', 80) || none.hasAddress('127.0.0.1', 80), false)
  for (const entry of [
    '',
    '*',
    '*.internal',
    'http://host',
    'host:0',
    'host:65536',
    'host:',
    'host:http',
    '10.0.0.0/33',
    '10.0.0.0/8:80',
    '127.1',
    '0x7f.1:80',
    '256.1.1.1',
    'user@host',
    'a b',
    '[::1',
  ]) {
    assert.throws(
      () => parseAllow([entry]),
      (error) => error instanceof Error && error.message.startsWith(`"${entry}" is not`),
      entry,
    )
  }
})
