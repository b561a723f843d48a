// Rights are checked at the moment of the change, not when the run starts.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestRuns } from '../../test/kit/run-worker.ts'
import { createScriptedModel, type Script } from '../../test/kit/scripted-model.ts'
import { deleteAgent, updateAgent } from '../agents/agents.ts'
import type { Agent, AgentPatch } from '../kernel/agent.ts'
import { type LogFields, silentLog } from '../kernel/log.ts'
import { systemActor } from '../kernel/principal.ts'
import type { Run } from '../kernel/run.ts'
import { followAgent } from '../triggers/follow-agent.ts'

const lines: string[] = []
const log = { ...silentLog, warn: ({ run_id }: LogFields, message: string) => void lines.push(`${message} ${run_id}`) }
const runs = await createTestRuns({ log })
const { pool, projectId, models } = runs
const by = { actor: systemActor, checkNames: async () => null, onChanged: followAgent }
const STEPS = 4

/** Creates an object in each of four steps; between the second and the third something is changed. */
function creating(between: () => Promise<unknown>): Script {
  return async (_request, call) => {
    if (call === 3) await between()
    if (call > STEPS) return { text: 'Done.' }
    const args = { type: 'Live', properties: { call }, reasoning: 'It is needed.' }
    return { calls: [{ name: 'object_create', args }] }
  }
}

let named = 0
async function worker(between: (agent: Agent) => Promise<unknown>): Promise<Agent> {
  const name = `worker ${++named}`
  const agent: Agent = await runs.createAgent({ name, model: { provider: 'test', name }, tools: ['object_create'] })
  models.set(name, createScriptedModel(creating(() => between(agent))))
  return agent
}

async function effects(run: Run) {
  const steps = (await runs.steps(run.id)).filter((step) => step.kind === 'tool')
  const { rows } = await pool.query<{ made: number; suggested: number; refused: number }>(
    `select (select count(*)::int from object_versions where run_id = $1) as made,
       (select count(*)::int from tasks where kind = 'suggestion' and run_id = $1) as suggested,
       (select count(*)::int from audit_log where action = 'capability.refused' and details->>'run_id' = $1::text) as refused`,
    [run.id],
  )
  assert.equal(lines.filter((line) => line === `a capability was refused ${run.id}`).length, rows[0]?.refused)
  return { ...rows[0], blocked: steps.map((step) => step.blocked) }
}
const free = { canCreateObjects: true, canUpdateObjects: true, canDeleteObjects: true }
const patch = (agent: Agent, change: AgentPatch) => updateAgent(pool, projectId, agent.id, change, by)

test('a capability that is taken away in mid-run is missing at the next change', async () => {
  const agent = await worker((self) => patch(self, { capabilities: { ...free, canCreateObjects: false } }))
  assert.deepEqual(await effects(await runs.run(agent)), {
    made: 2,
    suggested: 0,
    refused: 2,
    blocked: [null, null, 'capability', 'capability'],
  })
})

test('an agent whose mode becomes suggest in mid-run suggests its next change', async () => {
  const agent = await worker((self) => patch(self, { execution_mode: 'suggest' }))
  assert.deepEqual(await effects(await runs.run(agent)), {
    made: 2,
    suggested: 2,
    refused: 0,
    blocked: [null, null, null, null],
  })
})

test('a deleted agent can change nothing any more', async () => {
  const agent = await worker((self) => deleteAgent(pool, projectId, self.id, by))
  assert.deepEqual(await effects(await runs.run(agent)), {
    made: 2,
    suggested: 0,
    refused: 2,
    blocked: [null, null, 'capability', 'capability'],
  })
})

for (const { name, change, expected } of [
  {
    name: 'loses a capability',
    change: { capabilities: { ...free, allowedObjectTypes: ['Other'] } },
    expected: { made: 2, suggested: 0, refused: 2, blocked: [null, null, 'capability', 'capability'] },
  },
  {
    name: 'may only suggest',
    change: { execution_mode: 'suggest' as const },
    expected: { made: 2, suggested: 2, refused: 0, blocked: [null, null, null, null] },
  },
]) {
  test(`a running child loses the right when its parent ${name}`, async () => {
    const boss = `boss ${++named}`
    const parent = await runs.createAgent({
      name: boss,
      model: { provider: 'test', name: boss },
      tools: ['spawn_agent'],
    })
    const child = await worker(() => patch(parent, change))
    models.set(
      boss,
      createScriptedModel([
        { calls: [{ name: 'spawn_agent', args: { agent: child.name, input: 'Go.' } }] },
        { text: 'Done.' },
      ]),
    )
    const run = await runs.run(parent)
    const { rows } = await pool.query<{ id: string }>('select id from agent_runs where parent_run_id = $1', [run.id])
    assert.deepEqual(await effects(await runs.get(rows[0]?.id ?? '')), expected)
  })
}

test('rights given to a parent in mid-run do not widen the rights of its running child', async () => {
  const boss = `boss ${++named}`
  const none = { ...free, canCreateObjects: false }
  const parent = await runs.createAgent({
    name: boss,
    model: { provider: 'test', name: boss },
    tools: ['spawn_agent'],
    capabilities: none,
  })
  const child = await worker(() => patch(parent, { capabilities: free }))
  models.set(
    boss,
    createScriptedModel([
      { calls: [{ name: 'spawn_agent', args: { agent: child.name, input: 'Go.' } }] },
      { text: 'Done.' },
    ]),
  )
  const run = await runs.run(parent)
  const { rows } = await pool.query<{ id: string }>('select id from agent_runs where parent_run_id = $1', [run.id])
  assert.equal((await effects(await runs.get(rows[0]?.id ?? ''))).made, 0)
})
