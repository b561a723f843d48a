import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestDatabase } from '../../test/kit/database.ts'
import { insertProject } from '../../test/kit/runs.ts'
import type { Db } from '../db/pool.ts'
import type { ClaimedRun } from '../journal/claim.ts'
import { newId } from '../kernel/id.ts'
import { createDefinitions } from './definitions.ts'

const { pool } = await createTestDatabase()
const projectId = await insertProject(pool)
const MANY = 5_100

const agentIds = Array.from({ length: MANY }, () => newId())
await pool.query(
  `insert into agents (id, project_id, name, prompt, capabilities)
   select id, $2, 'agent ' || place, 'Work.', '{}' from unnest($1::uuid[]) with ordinality as a (id, place)`,
  [agentIds, projectId],
)

/** The part of a claim that definitions read. */
const claimOf = (agentId: string, changed = 1): ClaimedRun =>
  ({ agent_id: agentId, agent_changed: changed, project_id: projectId, project_changed: 1 }) as ClaimedRun

test('a claim finds all its definitions, however many agents the process has met', async () => {
  const define = createDefinitions(pool)
  const [first = '', ...others] = agentIds
  for (let at = 0; at < others.length; at += 500) await define(others.slice(at, at + 500).map((id) => claimOf(id)))
  // One agent is known by now, and one is new: reading the new one must not lose the known one.
  const known = claimOf(others.at(-1) ?? '')
  const fresh = claimOf(first)
  const definitionOf = await define([known, fresh])
  assert.equal(definitionOf(known)?.agent.id, known.agent_id)
  assert.equal(definitionOf(fresh)?.agent.id, first)
})

test('two claims at once keep the definitions that each of them needs', async () => {
  const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  let reads = 0
  const gated: Db = {
    query: async (sql, values) => {
      const text = typeof sql === 'string' ? sql : sql.text
      if (text.includes('from agents')) await gates[reads++]?.promise
      return pool.query(sql as string, values as unknown[]) as never // one of the driver's overloads
    },
  }
  const define = createDefinitions(gated)
  const one = define(agentIds.slice(0, 1).map((id) => claimOf(id)))
  const all = define(agentIds.slice(1).map((id) => claimOf(id)))
  gates[0]?.resolve()
  const definitionOf = await one
  gates[1]?.resolve()
  await all
  assert.equal(definitionOf(claimOf(agentIds[0] ?? ''))?.agent.id, agentIds[0])
})

test('a change holds from the next claim on, and a deleted agent has no definition', async () => {
  const define = createDefinitions(pool)
  const [agentId = ''] = agentIds
  const before = claimOf(agentId)
  assert.equal((await define([before]))(before)?.agent.name, 'agent 1')
  await pool.query(`update agents set name = 'renamed' where id = $1`, [agentId])
  assert.equal((await define([before]))(before)?.agent.name, 'agent 1')
  const after = claimOf(agentId, 2)
  assert.equal((await define([after]))(after)?.agent.name, 'renamed')
  const gone = { ...after, agent_changed: null }
  assert.equal((await define([gone]))(gone), null)
})
