import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import { atEnd } from '../../../test/kit/at-end.ts'
import { createTestDatabase } from '../../../test/kit/database.ts'
import { repository } from '../../../test/kit/process.ts'
import { insertProject } from '../../../test/kit/runs.ts'
import { until } from '../../../test/kit/until.ts'
import { newId } from '../../kernel/id.ts'

const { pool, url } = await createTestDatabase()
await pool.query('create table public.graph_calls (thread_id text, node text)')
const project = await insertProject(pool)
const NODES = ['one', 'two', 'left', 'right', 'last']

interface GraphProcess {
  child: ChildProcess
  lines: string[]
  kill(): Promise<void>
}

function startGraph(threadId: string, stopAt = ''): GraphProcess {
  const program = ['test/fixtures/graph-process.ts', url, project, threadId, stopAt]
  const child = spawn(process.execPath, program, { cwd: repository, stdio: ['ignore', 'pipe', 'inherit'] })
  const lines: string[] = []
  createInterface(child.stdout).on('line', (line) => lines.push(line))
  const gone = once(child, 'exit')
  const kill = async (): Promise<void> => {
    child.kill('SIGKILL')
    await gone
  }
  atEnd(kill)
  return { child, lines, kill }
}

async function finish(threadId: string): Promise<string> {
  const { child, lines } = startGraph(threadId)
  const [code] = await once(child, 'close')
  assert.equal(code, 0)
  return lines.at(-1) ?? ''
}

async function callsOf(threadId: string): Promise<Record<string, number>> {
  const { rows } = await pool.query<{ node: string; count: number }>(
    'select node, count(*)::int as count from public.graph_calls where thread_id = $1 group by node',
    [threadId],
  )
  return Object.fromEntries(rows.map((row) => [row.node, row.count]))
}

test('after a kill -9 in each node another process goes on, and no finished node is called again', async () => {
  const threadId = newId()
  for (const node of ['one', 'two', 'last']) {
    const { lines, kill } = startGraph(threadId, node)
    await until(() => lines.includes(`in ${node}`), `the graph is in ${node}`, 60_000)
    await kill()
  }
  assert.equal(await finish(threadId), 'done one two left right last')
  // Each node in which a process died was started twice and finished once.
  assert.deepEqual(await callsOf(threadId), { one: 2, two: 2, left: 1, right: 1, last: 2 })
})

test('after a kill -9 in one of two parallel nodes the finished node is not called again', async () => {
  const threadId = newId()
  const { kill } = startGraph(threadId, 'right')
  const isLeftStored = async (): Promise<boolean> => {
    const { rowCount } = await pool.query(
      `select from supervisor_writes where thread_id = $1 and value::text = '["left"]'`,
      [threadId],
    )
    return rowCount === 1 && (await callsOf(threadId)).right === 1
  }
  await until(isLeftStored, 'the write of the left node is stored', 60_000)
  await kill()
  assert.equal(await finish(threadId), 'done one two left right last')
  assert.deepEqual(await callsOf(threadId), { one: 1, two: 1, left: 1, right: 2, last: 1 })
})

test('after a kill -9 at any moment the state is whole, and at most the running node is called again', async () => {
  const threadId = newId()
  let kills = 0
  // Each process is killed a little later than the one before it: after its first line, its second, …
  for (let place = 0; place < 4; place++) {
    const { lines, kill, child } = startGraph(threadId)
    await until(
      () => lines.length > place || child.exitCode !== null,
      `the process has said ${place + 1} lines`,
      60_000,
    )
    if (child.exitCode === null) kills += 1
    await kill()
  }
  const last = await finish(threadId)
  assert.equal(last, 'done one two left right last')
  const calls = await callsOf(threadId)
  assert.deepEqual(Object.keys(calls).sort(), NODES.toSorted())
  const again = Object.values(calls).reduce((sum, count) => sum + count - 1, 0)
  // Two nodes run in parallel once.
  assert.ok(again <= kills + 1, `${again} calls were repeated after ${kills} kills: ${JSON.stringify(calls)}`)
})
