import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestDatabase } from '../../test/kit/database.ts'
import { nothingSetOff } from '../../test/kit/nothing-set-off.ts'
import { insertProject } from '../../test/kit/runs.ts'
import { inTransaction } from '../db/transaction.ts'
import { newId } from '../kernel/id.ts'
import type { GraphChange } from '../kernel/object.ts'
import { systemActor } from '../kernel/principal.ts'
import type { SuggestedChange } from '../kernel/task.ts'
import { byPerson } from './author.ts'
import { type AgentOutcome, changeAsAgent } from './change-as-agent.ts'
import { createObjectWriter, MOST_PROPERTIES } from './write-objects.ts'

const { pool } = await createTestDatabase()
const projectId = await insertProject(pool)
const writer = createObjectWriter({ pool, setsOff: nothingSetOff })
const capabilities = { canCreateObjects: true, canUpdateObjects: true, canDeleteObjects: true }

async function create(properties: Record<string, unknown>): Promise<string> {
  const change = { op: 'create', type: 'Large', key: null, properties } as const
  const outcome = await writer.write({ projectId, change, author: byPerson(systemActor) })
  return outcome.kind === 'written' ? outcome.object.id : assert.fail()
}

async function ask(
  mode: 'execute' | 'suggest',
  change: GraphChange,
): Promise<AgentOutcome & { suggested: SuggestedChange[] }> {
  const suggested: SuggestedChange[] = []
  const suggest = async (_tx: unknown, one: SuggestedChange): Promise<string> => {
    suggested.push(one)
    return newId()
  }
  const rights = { mode, capabilities, require_approval: [] }
  const shared = {
    projectId,
    agentId: newId(),
    runId: newId(),
    depth: 0,
    apply: null,
    reasoning: 'Because.',
    approvedBy: null,
  }
  const outcome = await inTransaction(pool, (tx) =>
    changeAsAgent(tx, { writer, suggest }, { ...shared, rights, change }),
  )
  return { ...outcome, suggested }
}

/** Properties that take this many bytes as JSON, `{"text":"…"}`. */
const properties = (bytes: number) => ({ text: 'x'.repeat(bytes - '{"text":""}'.length) })

test('a change that would make an object too large is refused at once, carried out or suggested', async () => {
  const id = await create(properties(1_000_000))
  const changes: GraphChange[] = [
    { op: 'update', id, properties: { more: 'y'.repeat(100_000) }, expectedVersion: null },
    { op: 'create', type: 'Large', key: null, properties: properties(MOST_PROPERTIES + 1) },
  ]
  for (const change of changes) {
    const refused = await ask('execute', change)
    assert.match(String(refused.result.error), /1 MiB/)
    assert.equal(refused.isError, true)
    assert.deepEqual(await ask('suggest', change), refused)
  }
})

test('a change that makes an object exactly as large as allowed is suggested', async () => {
  const id = await create({ text: '' })
  const changes: GraphChange[] = [
    { op: 'update', id, properties: properties(MOST_PROPERTIES), expectedVersion: null },
    { op: 'create', type: 'Large', key: null, properties: properties(MOST_PROPERTIES) },
  ]
  for (const change of changes) assert.equal((await ask('suggest', change)).suggested.length, 1)
})
