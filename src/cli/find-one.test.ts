import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CommandFailure } from './exit-codes.ts'
import { findOne, type Nameable } from './find-one.ts'
import { shortId, shortIdsOf } from './short-id.ts'

const candidate = (id: string, name: string, text?: string): Nameable<string> => ({
  thing: name,
  id,
  names: [name],
  label: name,
  ...(text === undefined ? {} : { text }),
})
const agents = [
  candidate('01a1e73c-2053-78b6-994b-ebe2ccc5d6a7', 'Writer'),
  candidate('01a1e73c-2039-742f-bb25-f9e9aa5c840b', 'Director'),
  candidate('78434b98-a27a-87c1-a14a-25b462418418', 'Scout'),
  candidate('beef4b98-a27a-87c1-a14a-25b462418418', 'Feed'),
  candidate('feedbeef-a27a-87c1-a14a-25b462418418', 'Cook'),
]

const found: [reference: string, name: string][] = [
  ['Writer', 'Writer'],
  ['writer', 'Writer'],
  ['WRITER', 'Writer'],
  ['78434b98', 'Scout'],
  ['7843', 'Scout'],
  ['7843-4B98', 'Scout'],
  ['01a1e73c-2053', 'Writer'],
  ['01a1e73c205', 'Writer'],
  ['01A1E73C-2053-78B6-994B-EBE2CCC5D6A7', 'Writer'],
  ['beef', 'Feed'],
]
for (const [reference, name] of found) {
  test(`"${reference}" is ${name}`, () => assert.equal(findOne('agent', reference, agents), name))
}

function failureOf(reference: string, candidates: readonly Nameable<string>[] = agents): CommandFailure {
  try {
    findOne('agent', reference, candidates)
  } catch (error) {
    if (error instanceof CommandFailure) return error
    throw error
  }
  return assert.fail(`"${reference}" was found`)
}

test('an ambiguous beginning is never guessed: the candidates are named with letters that tell them apart', () => {
  const { message, lines, exitCode, details } = failureOf('01a1e73c')
  assert.equal(exitCode, 2)
  assert.equal(message, '"01a1e73c" means 2 agents. Choose one by the letters of its id:')
  assert.deepEqual(lines, ['01a1e73c-2053  Writer', '01a1e73c-2039  Director'])
  assert.deepEqual(details, { candidates: [agents[0]?.id, agents[1]?.id] })
})

test('a name that is also the beginning of another id is ambiguous', () => {
  assert.equal(failureOf('feed').lines.length, 2)
})

test('an unknown name suggests the nearest one', () => {
  assert.equal(failureOf('Wirter').message, 'There is no agent "Wirter". Did you mean "Writer"?')
  assert.equal(failureOf('nobody at all').message, 'There is no agent "nobody at all".')
  assert.equal(failureOf('01a').message, 'There is no agent "01a".', 'three letters are no id')
  assert.equal(failureOf('').exitCode, 2)
})

test('case tells two names apart that differ by nothing else', () => {
  const both = [candidate('a', 'Ada'), candidate('b', 'ADA')]
  assert.equal(findOne('agent', 'ADA', both), 'ADA')
  assert.equal(failureOf('ada', both).lines.length, 2)
})

test('words of a text find a thing if nothing has that name', () => {
  const tasks = [candidate('a', 'one', 'Update Ticket The export is empty'), candidate('b', 'two', 'Ship on Friday?')]
  assert.equal(findOne('task', 'friday', tasks), 'two')
  assert.equal(findOne('task', 'one', tasks), 'one')
  assert.equal(failureOf('on', tasks).message, 'There is no agent "on".')
})

test('many candidates are cut, and a name among them cannot break the lines', () => {
  const many = Array.from({ length: 25 }, (_, place) =>
    candidate(`abcd${String(place).padStart(4, '0')}`, `a\n\u001b[2Jb`),
  )
  const { lines, message } = failureOf('abcd', many)
  assert.match(message, /means 25 agents/)
  assert.equal(lines.length, 11)
  assert.equal(lines[0], 'abcd0000  a ␛[2Jb')
  assert.equal(lines[10], 'and 15 more')
})

test('short ids have the time of the id, or eight random letters, and more if that does not tell them apart', () => {
  assert.equal(shortId('01a1e73c-2053-78b6-994b-ebe2ccc5d6a7'), '01a1e73c-2053')
  assert.equal(shortId('78434b98-a27a-87c1-a14a-25b462418418'), '78434b98')
  const ids = [
    '01a1e73c-2053-78b6-994b-ebe2ccc5d6a7',
    '01a1e73c-2053-78b7-994b-ebe2ccc5d6a7',
    '78434b98-a27a-87c1-a14a-25b462418418',
  ]
  assert.deepEqual(ids.map(shortIdsOf(ids)), ['01a1e73c-2053-78b6', '01a1e73c-2053-78b7', '78434b98'])
})
