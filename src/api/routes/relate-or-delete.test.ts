// A relationship and the deletion of its end at the same moment: in either order, no relationship leads to a deleted
// object.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestApp } from '../../../test/kit/app.ts'
import { inTransaction } from '../../db/transaction.ts'
import { newId } from '../../kernel/id.ts'
import type { GraphObject } from '../../kernel/object.ts'
import { suggest } from '../../tasks/suggest.ts'

const kit = await createTestApp()
const { pool } = kit
const project = await kit.createProject('Edges')
const base = `/api/projects/${project.id}`
const agent = await kit.createAgent(project.id, { name: 'Suggester', execution_mode: 'suggest' })

interface Pair {
  from: string
  to: string
}
const create = async (): Promise<string> =>
  (await kit.call<GraphObject>(`POST ${base}/objects`, { body: { type: 'Thing', properties: {} } })).body.id
const createPairs = (count: number): Promise<Pair[]> =>
  Promise.all(Array.from({ length: count }, async () => ({ from: await create(), to: await create() })))
const edge = ({ from, to }: Pair) => ({ type: 'leads_to', from_id: from, to_id: to, properties: {} })
const remove = (id: string) => kit.call(`DELETE ${base}/objects/${id}`)

async function suggestEdge(pair: Pair): Promise<string> {
  const taskId = newId()
  const shared = { projectId: project.id, agentId: agent.id, runId: newId(), reasoning: 'Because.', depth: 0 }
  const about = { object_type: 'Thing', object_id: pair.from, base_version: null }
  const change = { op: 'relate', ...about, before: null, after: edge(pair) } as const
  await inTransaction(pool, (tx) => suggest(tx, { ...shared, taskId, change }))
  return taskId
}

/** Relationships that a client can list, though one of their ends is deleted. */
async function edgesToNowhere(): Promise<number> {
  const { rowCount } = await pool.query(
    `select from relationships r join objects o on o.id in (r.from_id, r.to_id)
     where r.deleted_at is null and o.deleted_at is not null`,
  )
  return rowCount ?? 0
}

interface Way {
  name: string
  prepare: (pair: Pair) => Promise<() => ReturnType<typeof remove>>
  done: number
  refused: number
}
const ways: Way[] = [
  {
    name: 'that is created',
    prepare: async (pair) => () => kit.call(`POST ${base}/relationships`, { body: edge(pair) }),
    done: 201,
    refused: 404,
  },
  {
    name: 'whose suggestion is approved',
    prepare: async (pair) => {
      const taskId = await suggestEdge(pair)
      return () => kit.call(`POST ${base}/tasks/${taskId}/approve`)
    },
    done: 200,
    refused: 409,
  },
]
for (const { name, prepare, done, refused } of ways) {
  test(`a relationship ${name} while its end is deleted never outlives the end`, async () => {
    for (let round = 0; round < 3; round++) {
      const pairs = await createPairs(20)
      const attempts = await Promise.all(
        pairs.map(async (pair, place) => ({ relate: await prepare(pair), end: place % 2 ? pair.from : pair.to })),
      )
      await Promise.all(
        attempts.map(async ({ relate, end }) => {
          const [related, deleted] = await Promise.all([relate(), remove(end)])
          assert.equal(deleted.status, 204, deleted.text)
          assert.ok([done, refused].includes(related.status), related.text)
        }),
      )
      assert.equal(await edgesToNowhere(), 0)
    }
  })
}
