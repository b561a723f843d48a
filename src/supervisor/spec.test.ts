// The node rules and the prohibited behaviour of the specification, at the graph itself: each node breaks its rule here,
// and the graph holds it. The rules that need a model, a database or a client have tests of their own, named like these.
import assert from 'node:assert/strict'
import { readdir, readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { MemorySaver } from '@langchain/langgraph'
import {
  agentResults,
  agentState,
  agentSummary,
  type GraphState,
  newAgentState,
  type SupervisorState,
  supervisorState,
  supervisorStatuses,
  toDo,
  toDoStatuses,
} from '../kernel/supervisor.ts'
import { buildGraph, type Nodes } from './graph.ts'
import type { SpecialistWork } from './specialist.ts'

const summary = {
  agent_name: 'worker',
  step_id: 's',
  result: 'COMPLETED' as const,
  short_summary: 'Done.',
  key_decisions: [],
  next_instructions_for_supervisor: '',
}
const begin = (): GraphState => ({ supervisor: { status: 'RUNNING', plan: [], history: [] }, agent: newAgentState() })
const withoutAgent = ({ active_agent: _, ...rest }: SupervisorState): SupervisorState => rest

/** One round of a specialist, then the end. */
const obedient: Nodes = {
  supervisor: async (_, state) =>
    state.history.length === 0
      ? { ...state, active_agent: 'worker' }
      : { ...withoutAgent(state), status: 'DONE', notes: 'enough' },
  specialist: async () => ({ summary, agent: newAgentState() }),
  finalizer: async () => {},
  escalation: async () => {},
}

async function execute(nodes: Partial<Nodes>, from: GraphState = begin()): Promise<GraphState> {
  const graph = await buildGraph(['worker'], new MemorySaver(), { ...obedient, ...nodes })
  return graph.run({ threadId: 'thread', execution: 'e' }, from, 25)
}

const fieldsOf = (schema: { shape: Record<string, { isOptional(): boolean }> }): string[] =>
  Object.entries(schema.shape).map(([name, field]) => (field.isOptional() ? `${name}?` : name))

test('State model: the types and their fields are those of the specification', () => {
  assert.deepEqual(supervisorStatuses, ['RUNNING', 'DONE', 'ESCALATE'])
  assert.deepEqual(toDoStatuses, ['PENDING', 'IN_PROGRESS', 'DONE', 'BLOCKED'])
  assert.deepEqual(agentResults, ['COMPLETED', 'NEEDS_ASSISTANCE', 'FAILED'])
  assert.deepEqual(fieldsOf(toDo), ['id', 'description', 'status', 'owner_agent?', 'parent_id?', 'metadata?'])
  assert.deepEqual(fieldsOf(agentSummary), [
    ...['agent_name', 'step_id', 'result', 'short_summary', 'key_decisions', 'next_instructions_for_supervisor'],
  ])
  assert.deepEqual(fieldsOf(supervisorState), [
    ...['task_id?', 'context_id?', 'status', 'plan', 'history', 'active_agent?', 'notes?'],
  ])
  assert.deepEqual(fieldsOf(agentState), ['messages', 'tool_events', 'recursion_depth', 'scratchpad'])
})

test('Supervisor MUST NOT mutate AgentState: the state it answers with has no room for it', async () => {
  const agent = { ...newAgentState(), recursion_depth: 3, messages: ['as it was'] }
  const finishing = async (_: string, state: SupervisorState) => ({ ...state, status: 'DONE' as const })
  const { agent: after } = await execute({ supervisor: finishing }, { ...begin(), agent })
  assert.deepEqual(after, agent)
  for (const smuggled of [{ agent: newAgentState() }, { agent_state: newAgentState() }, { messages: [] }]) {
    const supervisor = async (_: string, state: SupervisorState) => ({ ...state, ...smuggled })
    await assert.rejects(execute({ supervisor }), /Unrecognized key/)
  }
})

test('Supervisor MUST NOT call tools: nothing that it is given can', async () => {
  let given: unknown[] = []
  await execute({
    supervisor: async (...all) => {
      given = all
      return obedient.supervisor(...all)
    },
  })
  assert.deepEqual(JSON.parse(JSON.stringify(given)), given, 'plain data')
})

test('Specialist agents MUST output one AgentSummary: another answer fails, and each round adds one', async () => {
  assert.deepEqual((await execute({})).supervisor.history, [summary])
  for (const wrong of [{}, { summary }, { summary: [summary, summary], agent: newAgentState() }]) {
    await assert.rejects(execute({ specialist: async () => wrong as unknown as SpecialistWork }))
  }
})

test('Specialist agents MUST NOT mutate SupervisorState (modifying SupervisorState from agents is prohibited)', async () => {
  const { supervisor } = await execute({
    specialist: async (_, state) => {
      state.plan.push({ id: 'mine', description: 'smuggled', status: 'DONE' })
      state.history.push(summary, summary)
      Object.assign(state, { status: 'ESCALATE', notes: 'smuggled' })
      const smuggled = { supervisor: { status: 'ESCALATE' }, supervisor_state: { status: 'ESCALATE' }, plan: [] }
      return { summary, agent: newAgentState(), ...smuggled }
    },
  })
  assert.deepEqual(supervisor, { status: 'DONE', plan: [], history: [summary], notes: 'enough' })
})

test('Finalizer MUST set status="DONE", whatever it does to the state that it is given', async () => {
  const { supervisor } = await execute({
    finalizer: async (_, state) => void Object.assign(state, { status: 'RUNNING', plan: null }),
  })
  assert.deepEqual([supervisor.status, supervisor.plan], ['DONE', []])
})

test('HITL Escalation MUST set status="ESCALATE" and terminates execution', async () => {
  const executed: string[] = []
  const { supervisor } = await execute({
    supervisor: async (_, state) => {
      executed.push('supervisor')
      return { ...state, status: 'ESCALATE' }
    },
    escalation: async (_, state) => {
      executed.push('hitl_escalation')
      Object.assign(state, { status: 'RUNNING', active_agent: 'worker' })
    },
    specialist: async () => assert.fail('it goes on'),
    finalizer: async () => assert.fail('it goes on'),
  })
  assert.deepEqual([supervisor.status, executed], ['ESCALATE', ['supervisor', 'hitl_escalation']])
})

test('implicit routing via LLM output is prohibited: an active agent that is no node is an error, never a route', async () => {
  await assert.rejects(execute({ supervisor: async (_, state) => ({ ...state, active_agent: 'somebody' }) }))
})

test('storing non-serializables in state is prohibited: a node that answers with one fails', async () => {
  const values: unknown[] = [new Date(), () => 1, new Map(), 1n, Symbol('x'), new (class Odd {})()]
  for (const value of values) {
    const plan = [{ id: 't', description: 'd', status: 'PENDING' as const, metadata: { value } }]
    const supervisor = async (_: string, state: SupervisorState) => ({ ...state, plan }) as SupervisorState
    await assert.rejects(execute({ supervisor }), String(value))
  }
})

test('inline long prompts are prohibited: no text in the source of the supervisor is as long as a prompt', async () => {
  const texts: string[] = []
  const folder = new URL('./', import.meta.url)
  for (const name of await readdir(folder)) {
    if (!name.endsWith('.ts') || name.endsWith('.test.ts')) continue
    const source = (await readFile(new URL(name, folder), 'utf8')).replace(/^\s*(\/\/|\/?\*).*$/gm, '')
    texts.push(...(source.match(/'(?:[^'\\\n]|\\.)*'|`[^`]*`/g) ?? []))
  }
  assert.ok(texts.length > 100)
  assert.deepEqual(
    texts.filter((text) => text.length > 300 && !/^`\s*(select|with|insert|update)\b/i.test(text)),
    [],
  )
})
