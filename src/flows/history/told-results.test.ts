import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestFlows } from '../../../test/kit/flows.ts'
import { getFlowRun } from './flow-runs.ts'
import { writeResults } from './whole-output.ts'

const flows = await createTestFlows({
  functions: {
    double: ({ items }: { items: number[] }) => items.map((item) => 2 * item),
    sum: ({ values }: { values: number[] }) => values.reduce((all, each) => all + each, 0),
  },
})

test('the parts of a list are one result, also in journals of releases that did not name them', async () => {
  const { id } = await flows.play({
    type: 'map_reduce',
    items: Array.from({ length: 12 }, (_, place) => place),
    workers: 12,
    map: { type: 'task', id: 'doubled', function: 'double' },
    reduce: { type: 'task', id: 'sum', function: 'sum' },
  })
  const expected = { doubled: Array.from({ length: 12 }, (_, place) => [2 * place]), sum: 132 }
  const read = async () => (await getFlowRun(flows.pool, flows.projectId, id, 1)).results
  const whole = async (): Promise<unknown> => {
    let text = ''
    for await (const piece of writeResults(flows.pool, id)) text += piece
    return JSON.parse(text)
  }
  assert.deepEqual([await read(), await whole()], [expected, expected])
  const { rowCount } = await flows.pool.query(
    `update flow_events set data = data - 'part' where run_id = $1 and data ? 'part'`,
    [id],
  )
  assert.equal(rowCount, 12)
  assert.deepEqual([await read(), await whole()], [expected, expected])
})
