import assert from 'node:assert/strict'
import { test } from 'node:test'
import { jsonSize } from './json-size.ts'

const written = (value: unknown): number => Buffer.byteLength(JSON.stringify(value))

test('the size of a value is about that of its JSON text', () => {
  const values = ['', 'abc', 'é"\n\u0001', [], {}, [1, 2, [3]], { a: { b: [true, null, 'x'] }, ü: '"' }, null, false]
  for (const value of values) {
    const { bytes } = jsonSize(value)
    assert.ok(bytes >= written(value) && bytes <= written(value) + 8, `${JSON.stringify(value)}: ${bytes}`)
  }
})

test('every value within another is a node', () => {
  assert.equal(jsonSize([1, { a: 2, b: [] }]).nodes, 5)
})

test('a shared part counts as often as it occurs, and is walked once', () => {
  let reads = 0
  const part = Array.from({ length: 100 }, (_, at) => at)
  const watched = new Proxy(part, {
    get: (target, name, receiver) => {
      reads += name === '0' ? 1 : 0
      return Reflect.get(target, name, receiver)
    },
  })
  let value: unknown = watched
  for (let level = 0; level < 10; level++) value = Array.from({ length: 100 }, () => value)
  const { nodes, bytes } = jsonSize(value)
  assert.ok(nodes > 1e21 && bytes > 1e21)
  assert.equal(reads, 1)
})
