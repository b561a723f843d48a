import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ALL, findIn, readAll } from './pages.ts'

/** A list of numbers, two to a page; the cursor is the next number. Returns the cursors that were asked for. */
function serveNumbers(t: { after: (done: () => void) => void }, count: number): string[] {
  const asked: string[] = []
  const { fetch } = globalThis
  t.after(() => Object.assign(globalThis, { fetch }))
  Object.assign(globalThis, {
    fetch: async (address: string) => {
      const cursor = new URL(address, 'http://localhost').searchParams.get('cursor') ?? '0'
      asked.push(cursor)
      const from = Number(cursor)
      const items = [from, from + 1].filter((each) => each < count)
      return Response.json({ items, next_cursor: from + 2 < count ? String(from + 2) : null })
    },
  })
  return asked
}

test('a list is read to its end, page by page', async (t) => {
  const asked = serveNumbers(t, 5)
  assert.deepEqual(await readAll('/numbers'), [0, 1, 2, 3, 4])
  assert.deepEqual(asked, ['0', '2', '4'])
})

test('of a very long list the first pages are read, unless all are wanted', async (t) => {
  serveNumbers(t, 100)
  assert.equal((await readAll('/numbers')).length, 40)
  assert.equal((await readAll('/numbers', {}, ALL)).length, 100)
})

test('an item is looked for page by page, until it is found or the list ends', async (t) => {
  const asked = serveNumbers(t, 7)
  assert.equal(await findIn<number>('/numbers', {}, (each) => each === 3), 3)
  assert.deepEqual(asked, ['0', '2'])
  assert.equal(await findIn<number>('/numbers', {}, (each) => each === 9), null)
})
