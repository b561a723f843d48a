import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { QueryClient, QueryObserver } from '@tanstack/react-query'
import { readAgain } from './read-again.ts'

/** A list on a page, whose reads end when the test says so. */
function watch(t: TestContext, queryKey: string[]) {
  const client = new QueryClient({ defaultOptions: { queries: { retry: false } } })
  const reads: { signal: AbortSignal; resolve: (value: number) => void; reject: (error: Error) => void }[] = []
  const observer = new QueryObserver(client, {
    queryKey,
    queryFn: ({ signal }) => new Promise<number>((resolve, reject) => reads.push({ signal, resolve, reject })),
  })
  t.after(observer.subscribe(() => {}))
  t.after(() => client.clear())
  const end = async (at: number): Promise<void> => {
    reads[at]?.resolve(at)
    await settle()
  }
  return { client, reads, end, shown: () => observer.getCurrentResult().data }
}

const settle = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 5))

test('a busy feed cancels no read, and one more follows after the last change', async (t) => {
  const { client, reads, end, shown } = watch(t, ['run', 'p', 'list'])
  await end(0)
  readAgain(client, ['run', 'p', 'list'])
  assert.equal(reads.length, 2)
  for (let change = 0; change < 10; change++) readAgain(client, ['run', 'p', 'list'])
  assert.equal(reads.length, 2, 'changes start no second read beside the first')
  await end(1)
  assert.equal(shown(), 1, 'the read under way arrived')
  assert.equal(reads[1]?.signal.aborted, false)
  assert.equal(reads.length, 3, 'a read that began after the changes is under way')
  readAgain(client, ['run', 'p'])
  await end(2)
  assert.equal(reads.length, 4, 'a change during the last read has its own')
  await end(3)
  assert.deepEqual([shown(), reads.length], [3, 4], 'nothing more is read without a change')
})

test('the first read of a page and a read that fails are followed too', async (t) => {
  const { client, reads, end, shown } = watch(t, ['run', 'p', 'list'])
  readAgain(client)
  reads[0]?.reject(new Error('the server is away'))
  await settle()
  assert.equal(reads.length, 2)
  await end(1)
  assert.equal(shown(), 1)
})

test('other things are not read', async (t) => {
  const { client, reads, end } = watch(t, ['run', 'p', 'list'])
  await end(0)
  readAgain(client, ['task', 'p', 'list'])
  await settle()
  assert.equal(reads.length, 1)
})
