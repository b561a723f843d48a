import assert from 'node:assert/strict'
import { test } from 'node:test'
import { toolChanges } from './tool-changes.ts'

const tool = (name: string, hash: string) => ({ name, hash, description: '' })

test('new, changed and missing tools are told, unchanged ones are not', () => {
  const changes = toolChanges(
    [tool('a', '1'), tool('b', '1'), tool('c', '1')],
    [tool('a', '1'), tool('b', '2'), tool('d', '1')],
  )
  assert.deepEqual(
    changes.map((each) => [each.change, each.tool.name]),
    [
      ['changed', 'b'],
      ['new', 'd'],
      ['gone', 'c'],
    ],
  )
})
