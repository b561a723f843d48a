// Runs and flow runs by the first letters of their ids.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestApp } from '../../../test/kit/app.ts'

const kit = await createTestApp()
const project = await kit.createProject()
const other = await kit.createProject('Another')
const agent = await kit.createAgent(project.id)

const [first, second, third, foreign, flowRun] = [
  '01a1e73c-2053-78b6-994b-ebe2ccc5d6a7',
  '01a1e73c-20a2-7c73-aac7-fd483e0bd226',
  '78434b98-a27a-87c1-a14a-25b462418418',
  '01a1e73c-2054-78b6-994b-ebe2ccc5d6a7',
  '01a1e73c-2055-78b6-994b-ebe2ccc5d6a7',
] as const
for (const [id, projectId, status] of [
  [first, project.id, 'completed'],
  [second, project.id, 'failed'],
  [third, project.id, 'completed'],
  [foreign, other.id, 'completed'],
] as const) {
  await kit.pool.query(
    `insert into agent_runs (id, project_id, agent_id, trigger, input, status, created_at, completed_at)
     values ($1, $2, $3, '{"type":"manual"}', '"x"', $4, timestamptz '2026-01-01' + $5 * interval '1 s', now())`,
    [id, projectId, agent.id, status, [first, second, third, foreign].indexOf(id)],
  )
}
await kit.pool.query(
  `insert into flow_runs (id, project_id, root, input, timeout, status, progress, completed_at)
   values ($1, $2, '{"type":"sequential","steps":[]}', 'null', 1000, 'completed', $3, now())`,
  [flowRun, project.id, { total: 0, pending: 0, running: 0, completed: 0, failed: 0, skipped: 0 }],
)

const found = async (path: string): Promise<string[]> => {
  const { status, body, text } = await kit.call<{ items: { id: string }[] }>(`GET /api/projects/${project.id}/${path}`)
  assert.equal(status, 200, text)
  return body.items.map(({ id }) => id)
}

const cases: [path: string, expected: readonly string[]][] = [
  ['runs?id=01a1e73c', [second, first]],
  ['runs?id=01a1e73c-20', [second, first]],
  ['runs?id=01a1e73c-205', [first]],
  ['runs?id=01A1E73C205', [first]],
  [`runs?id=${first}`, [first]],
  ['runs?id=78434b98', [third]],
  ['runs?id=78434b99', []],
  ['runs?id=01a1e73c&status=failed', [second]],
  [`runs?id=01a1e73c&agent_id=${agent.id}&limit=1`, [second]],
  ['flow-runs?id=01a1e73c', [flowRun]],
  ['flow-runs?id=01a1e73c&status=failed', []],
]
for (const [path, expected] of cases) {
  test(`${path.replace(agent.id, 'AGENT')} finds ${expected.length}, and none of another project`, async () => {
    assert.deepEqual(await found(path), expected)
  })
}

test('fewer letters than eight, and letters of no id, are refused', async () => {
  for (const letters of ['01a1e73', 'Writer-x', '01a1e73c-2053-78b6-994b-ebe2ccc5d6a7f', '']) {
    for (const path of ['runs', 'flow-runs']) {
      const { status, body } = await kit.call<{ error: { message: string } }>(
        `GET /api/projects/${project.id}/${path}?id=${letters}`,
      )
      assert.equal(status, 400, letters)
      assert.match(body.error.message, /^query.id /)
    }
  }
})
