// A small graph with everything that routes name: objects, an edge, an entry of a processing log, a suggestion.
import assert from 'node:assert/strict'
import { inTransaction } from '../../src/db/transaction.ts'
import { newId } from '../../src/kernel/id.ts'
import { suggest } from '../../src/tasks/suggest.ts'
import type { TestApp } from './app.ts'

export interface TestGraph {
  reactorId: string
  objectId: string
  otherId: string
  relationshipId: string
  /** An entry that has failed, so that it can be retried. */
  entryId: string
  /** A suggestion that waits for a decision. */
  suggestionId: string
}

export async function createGraph(kit: TestApp, projectId: string): Promise<TestGraph> {
  const base = `/api/projects/${projectId}`
  const made = async (path: string, body: unknown): Promise<string> => {
    const answer = await kit.call<{ id: string }>(`POST ${base}${path}`, { body })
    assert.equal(answer.status, 201, answer.text)
    return answer.body.id
  }
  const reaction_config = { objectTypes: ['Watched'], events: ['created' as const] }
  const { id: reactorId } = await kit.createAgent(projectId, {
    name: 'a reactor',
    trigger_type: 'reaction',
    reaction_config,
  })
  const objectId = await made('/objects', { type: 'Watched', key: 'k', properties: { name: 'first' } })
  const otherId = await made('/objects', { type: 'Other', properties: {} })
  const relationshipId = await made('/relationships', { type: 'knows', from_id: objectId, to_id: otherId })
  const { rows } = await kit.pool.query<{ id: string }>(
    `update processing_log set status = 'failed', run_id = null, error_message = 'No.', completed_at = muster.now()
     where agent_id = $1 returning id`,
    [reactorId],
  )
  await kit.pool.query(`delete from agent_runs where agent_id = $1`, [reactorId])
  const suggestionId = newId()
  const change = {
    op: 'update' as const,
    object_type: 'Watched',
    object_id: objectId,
    base_version: 1,
    before: { name: 'first' },
    after: { name: 'second' },
  }
  const shared = { projectId, agentId: reactorId, runId: newId(), reasoning: 'Because.', depth: 0 }
  await inTransaction(kit.pool, (tx) => suggest(tx, { taskId: suggestionId, change, ...shared }))
  return { reactorId, objectId, otherId, relationshipId, entryId: rows[0]?.id ?? assert.fail(), suggestionId }
}
