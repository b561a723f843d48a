import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { QueryClient } from '@tanstack/react-query'
import { projectsQuery } from './queries.ts'

/** Serves pages of one project each. Returns the cursors that were asked for. */
function servePages(t: TestContext, count: number): (string | null)[] {
  const asked: (string | null)[] = []
  t.mock.method(globalThis, 'fetch', async (address: string) => {
    const cursor = new URL(address, 'http://localhost').searchParams.get('cursor')
    asked.push(cursor)
    const page = Number(cursor ?? 0)
    return Response.json({ items: [{ id: String(page) }], next_cursor: page + 1 < count ? String(page + 1) : null })
  })
  return asked
}

const read = () => new QueryClient({ defaultOptions: { queries: { gcTime: 0 } } }).fetchQuery(projectsQuery)

test('the projects of all pages are read', async (t) => {
  const asked = servePages(t, 3)
  const { items, next_cursor } = await read()
  assert.deepEqual([items.map(({ id }) => id), next_cursor], [['0', '1', '2'], null])
  assert.deepEqual(asked, [null, '1', '2'])
})

test('after 25 pages the answer says that there are more projects', async (t) => {
  servePages(t, 40)
  const { items, next_cursor } = await read()
  assert.deepEqual([items.length, next_cursor], [25, '25'])
})
