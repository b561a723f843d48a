import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cpuTime } from '../../test/kit/cpu-time.ts'
import type { PromptVersion } from '../kernel/prompt.ts'
import { diffVersions } from './diff-prompt.ts'

const version = (number: number, ...contents: string[]): PromptVersion => ({
  version: number,
  seeded: false,
  actor: { type: 'user', id: null },
  created_at: '2026-01-01T00:00:00Z',
  rolled_back_to: null,
  messages: contents.map((content, place) => ({ role: place === 0 ? 'system' : 'user', content })),
})

test('lines that differ are distinguished from lines that stay', () => {
  const diff = diffVersions(version(1, 'one\ntwo\nthree', 'task'), version(3, 'one\n2\nthree', 'task', 'more'))
  assert.deepEqual(diff, {
    from: 1,
    to: 3,
    added: 4,
    removed: 1,
    exact: true,
    parts: [
      { op: 'same', text: '[system]\none' },
      { op: 'removed', text: 'two' },
      { op: 'added', text: '2' },
      { op: 'same', text: 'three\n\n[user]\ntask' },
      { op: 'added', text: '\n[user]\nmore' },
    ],
  })
})

test('a role that changes is a difference', () => {
  const to = version(2, 'same')
  const diff = diffVersions(version(1, 'same'), { ...to, messages: [{ role: 'user', content: 'same' }] })
  assert.deepEqual([diff.added, diff.removed], [1, 1])
})

test('a deletion removes every line, and the same version has no difference', () => {
  const deleted: PromptVersion = { ...version(2), messages: null }
  assert.deepEqual(diffVersions(version(1, 'a'), deleted).parts, [{ op: 'removed', text: '[system]\na' }])
  assert.deepEqual(diffVersions(deleted, deleted).parts, [])
  assert.deepEqual(diffVersions(version(1, 'a'), version(1, 'a')).parts, [{ op: 'same', text: '[system]\na' }])
})

test('texts that have nothing in common are shown as replaced, without a long search', () => {
  const lines = (letter: string): string => Array.from({ length: 90_000 }, (_, i) => `${letter}${i % 10}`).join('\n')
  const startedAt = cpuTime()
  const diff = diffVersions(version(1, lines('a')), version(2, lines('b')))
  assert.ok(cpuTime() - startedAt < 2_000, 'the comparison takes no longer than a blink, even on a busy machine')
  assert.equal(diff.exact, false)
  assert.deepEqual(
    diff.parts.map(({ op }) => op),
    ['removed', 'added'],
  )
  assert.deepEqual([diff.added, diff.removed], [90_001, 90_001])
})
