import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CommandFailure } from './exit-codes.ts'
import { chooseProject } from './workplace.ts'

const project = (id: string, name: string) => ({ id, name, halted_at: null, created_at: '2026-01-01T00:00:00Z' })
const demo = project('01a1e73c-2053-78b6-994b-ebe2ccc5d6a7', 'Demo')
const shop = project('78434b98-a27a-87c1-a14a-25b462418418', 'Shop')

const failureOf = (choose: () => unknown): CommandFailure => {
  try {
    choose()
  } catch (error) {
    if (error instanceof CommandFailure) return error
  }
  return assert.fail('a project was chosen')
}

test('the only project needs no name', () => {
  assert.equal(chooseProject(null, [shop]), shop)
})

test('a project is named, or chosen by the first letters of its id', () => {
  assert.equal(chooseProject('shop', [demo, shop]), shop)
  assert.equal(chooseProject('01a1e73c', [demo, shop]), demo)
})

test('of several projects none is guessed: they are listed', () => {
  const { message, lines, exitCode } = failureOf(() => chooseProject(null, [demo, shop]))
  assert.equal(message, 'There are 2 projects. Name one with --project:')
  assert.deepEqual(lines, ['Demo', 'Shop'])
  assert.equal(exitCode, 2)
})

test('an unknown project suggests the nearest, and none at all says so', () => {
  assert.match(failureOf(() => chooseProject('Dmeo', [demo, shop])).message, /Did you mean "Demo"\?$/)
  assert.match(failureOf(() => chooseProject(null, [])).message, /^There is no project yet\./)
})
