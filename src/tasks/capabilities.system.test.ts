// Capabilities × operations × modes × askers: every refusal is an error to the model, a block on the step and an audit
// entry, and every allowed change happens, by execution or by suggestion. The expected outcome is written down here,
// apart from the code.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestRuns } from '../../test/kit/run-worker.ts'
import { createScriptedModel, type ScriptedCall } from '../../test/kit/scripted-model.ts'
import type { Capabilities } from '../kernel/agent.ts'
import { systemActor } from '../kernel/principal.ts'
import type { ExecutionMode } from '../kernel/rights.ts'
import type { Run, Step } from '../kernel/run.ts'
import { byPerson } from '../objects/author.ts'

const runs = await createTestRuns()
const { pool, projectId, models, writer } = runs

const free: Capabilities = { canCreateObjects: true, canUpdateObjects: true, canDeleteObjects: true }
const sets: Record<string, { capabilities: Capabilities; refused: readonly Operation[] }> = {
  'everything is allowed': { capabilities: free, refused: [] },
  'no creating': {
    capabilities: { ...free, canCreateObjects: false },
    refused: ['create A', 'create B', 'relate A A', 'relate A B'],
  },
  'no updating': { capabilities: { ...free, canUpdateObjects: false }, refused: ['update A', 'update B'] },
  'no deleting': { capabilities: { ...free, canDeleteObjects: false }, refused: ['delete A', 'delete B'] },
  'type A only': {
    capabilities: { ...free, allowedObjectTypes: ['A'] },
    refused: ['create B', 'update B', 'delete B', 'relate A B'],
  },
  'no type at all': { capabilities: { ...free, allowedObjectTypes: [] }, refused: operations() },
  nothing: {
    capabilities: { canCreateObjects: false, canUpdateObjects: false, canDeleteObjects: false },
    refused: operations(),
  },
}
type Operation = `${'create' | 'update' | 'delete'} ${'A' | 'B'}` | `relate A ${'A' | 'B'}`
function operations(): Operation[] {
  return ['create A', 'create B', 'update A', 'update B', 'relate A A', 'relate A B', 'delete A', 'delete B']
}

const modes: { mode: ExecutionMode; apply?: 'execute' | 'suggest'; isSuggested: boolean }[] = [
  { mode: 'execute', isSuggested: false },
  { mode: 'suggest', isSuggested: true },
  { mode: 'hybrid', apply: 'execute', isSuggested: false },
  { mode: 'hybrid', apply: 'suggest', isSuggested: true },
]

/**
 * The asker is the agent itself, a sub-agent of a restricted agent, or a restricted sub-agent of an unrestricted one.
 */
const askers = ['agent', 'sub-agent of the restricted', 'restricted sub-agent'] as const

let named = 0
async function newObject(type: string): Promise<string> {
  const change = { op: 'create', type, key: null, properties: { name: type } } as const
  const outcome = await writer.write({ projectId, change, author: byPerson(systemActor) })
  return outcome.kind === 'written' ? outcome.object.id : assert.fail()
}

interface Asked {
  run: Run
  agentId: string
  steps: Extract<Step, { kind: 'tool' }>[]
}

/** Makes all calls in one step, as the asker that is restricted by `capabilities` and works in `mode`. */
async function ask(
  asker: (typeof askers)[number],
  { capabilities, mode }: { capabilities: Capabilities; mode: ExecutionMode },
  calls: ScriptedCall[],
): Promise<Asked> {
  const script = `caller ${++named}`
  models.set(
    script,
    createScriptedModel((request) =>
      request.prompt.some((message) => message.role === 'assistant') ? { text: 'Done.' } : { calls },
    ),
  )
  const tools = ['object_create', 'object_update', 'object_delete', 'relationship_create']
  const model = { provider: 'test', name: script }
  const isRestricted = asker !== 'sub-agent of the restricted'
  const caller = await runs.createAgent({
    name: script,
    model,
    tools,
    ...(isRestricted ? { capabilities, execution_mode: mode } : { execution_mode: mode }),
  })
  if (asker === 'agent') return asked(await runs.run(caller), caller.id)
  const boss = `boss ${named}`
  models.set(
    boss,
    createScriptedModel((request) =>
      request.prompt.some((message) => message.role === 'assistant')
        ? { text: 'Done.' }
        : { calls: [{ name: 'spawn_agent', args: { agent: script, input: 'Go.' } }] },
    ),
  )
  const parent = await runs.createAgent({
    name: boss,
    model: { provider: 'test', name: boss },
    tools: ['spawn_agent'],
    ...(isRestricted ? {} : { capabilities }),
  })
  const run = await runs.run(parent)
  const { rows } = await pool.query<{ id: string }>('select id from agent_runs where parent_run_id = $1', [run.id])
  return asked(await runs.get(rows[0]?.id ?? ''), caller.id)
}

async function asked(run: Run, agentId: string): Promise<Asked> {
  const steps = (await runs.steps(run.id)).filter((step) => step.kind === 'tool')
  return { run, agentId, steps }
}

for (const asker of askers) {
  for (const { mode, apply, isSuggested } of modes) {
    test(`${asker}, ${mode}${apply ? ` (${apply})` : ''}: each operation under each set of capabilities`, async () => {
      for (const [name, { capabilities, refused }] of Object.entries(sets)) {
        const known = { a: await newObject('A'), other: await newObject('A'), b: await newObject('B') }
        const doomed = { A: await newObject('A'), B: await newObject('B') }
        const beside = mode === 'execute' ? {} : { reasoning: 'Why not.', ...(apply ? { apply } : {}) }
        const argsOf: Record<Operation, { name: string; args: Record<string, unknown> }> = {
          'create A': { name: 'object_create', args: { type: 'A', properties: {} } },
          'create B': { name: 'object_create', args: { type: 'B', properties: {} } },
          'update A': { name: 'object_update', args: { id: known.a, properties: { changed: true } } },
          'update B': { name: 'object_update', args: { id: known.b, properties: { changed: true } } },
          'relate A A': { name: 'relationship_create', args: { type: 'r', from_id: known.a, to_id: known.other } },
          'relate A B': { name: 'relationship_create', args: { type: 'r', from_id: known.a, to_id: known.b } },
          'delete A': { name: 'object_delete', args: { id: doomed.A } },
          'delete B': { name: 'object_delete', args: { id: doomed.B } },
        }
        const calls = operations().map((operation) => ({
          name: argsOf[operation].name,
          args: { ...argsOf[operation].args, ...beside },
        }))
        const { run, agentId, steps } = await ask(asker, { capabilities, mode }, calls)
        assert.equal(run.status, 'completed', name)
        const expected = operations().map((operation) => (refused.includes(operation) ? 'capability' : null))
        assert.deepEqual(
          steps.map((step) => step.blocked),
          expected,
          name,
        )
        assert.deepEqual(
          steps.map((step) => step.is_error),
          expected.map((blocked) => blocked !== null),
          name,
        )
        const allowed = operations().length - refused.length
        const counts = await countEffects(run.id, agentId)
        assert.deepEqual(
          counts,
          { refusals: refused.length, suggestions: isSuggested ? allowed : 0, writes: isSuggested ? 0 : allowed },
          name,
        )
      }
    })
  }
}

async function countEffects(runId: string, agentId: string) {
  const { rows } = await pool.query<{ refusals: number; suggestions: number; writes: number }>(
    `select
       (select count(*)::int from audit_log where action = 'capability.refused' and actor_type = 'agent' and actor_id = $2
          and details->>'run_id' = $1) as refusals,
       (select count(*)::int from tasks where kind = 'suggestion' and run_id = $1::uuid) as suggestions,
       (select count(*)::int from object_versions where run_id = $1::uuid) +
       (select count(*)::int from relationships where run_id = $1::uuid) as writes`,
    [runId, agentId],
  )
  return rows[0]
}

test('a sub-agent of a suggesting agent suggests, whatever its own mode is', async () => {
  const id = await newObject('A')
  models.set(
    'eager',
    createScriptedModel((request) =>
      request.prompt.some((message) => message.role === 'assistant')
        ? { text: 'Done.' }
        : { calls: [{ name: 'object_update', args: { id, properties: { changed: true }, reasoning: 'Because.' } }] },
    ),
  )
  models.set(
    'careful',
    createScriptedModel((request) =>
      request.prompt.some((message) => message.role === 'assistant')
        ? { text: 'Done.' }
        : { calls: [{ name: 'spawn_agent', args: { agent: 'eager', input: 'Go.' } }] },
    ),
  )
  await runs.createAgent({ name: 'eager', model: { provider: 'test', name: 'eager' }, tools: ['object_update'] })
  const careful = await runs.createAgent({
    name: 'careful',
    model: { provider: 'test', name: 'careful' },
    tools: ['spawn_agent'],
    execution_mode: 'suggest',
  })
  await runs.run(careful)
  const { rows } = await pool.query(`select status from tasks where changes->0->>'object_id' = $1`, [id])
  assert.deepEqual(rows, [{ status: 'pending' }])
})

test('a refusal names the forbidden change, and an unknown object is no refusal', async () => {
  const capabilities = { ...free, allowedObjectTypes: ['A'] }
  const { steps } = await ask('agent', { capabilities, mode: 'execute' }, [
    { name: 'object_update', args: { id: await newObject('Secret'), properties: {} } },
    { name: 'object_update', args: { id: '00000000-0000-4000-8000-000000000000', properties: {} } },
  ])
  assert.deepEqual(
    steps.map(({ result, blocked }) => [(result as { error: string }).error, blocked]),
    [
      ['This agent may not change objects of the type "Secret".', 'capability'],
      ['There is no such object in this project, or it was deleted.', null],
    ],
  )
})
