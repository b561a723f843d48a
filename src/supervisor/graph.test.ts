import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MemorySaver } from '@langchain/langgraph'
import { type GraphState, newAgentState } from '../kernel/supervisor.ts'
import { buildGraph, type Nodes } from './graph.ts'

const THREAD = 'a-thread'
const begin = (): GraphState => ({ supervisor: { status: 'RUNNING', plan: [], history: [] }, agent: newAgentState() })

/** Checkpoints that outlive a process that dies at one of its writes. */
class DyingSaver extends MemorySaver {
  written = 0
  diesAt = Number.POSITIVE_INFINITY

  override put(...given: Parameters<MemorySaver['put']>) {
    this.#live()
    return super.put(...given)
  }

  override putWrites(...given: Parameters<MemorySaver['putWrites']>) {
    this.#live()
    return super.putWrites(...given)
  }

  #live(): void {
    this.written += 1
    if (this.written >= this.diesAt) throw new Error('the process died')
  }
}

function countedNodes(executed: string[]): Nodes {
  return {
    supervisor: async (_, state) => {
      executed.push('supervisor')
      const { active_agent: _agent, ...rest } = state
      return state.history.length === 0 ? { ...rest, active_agent: 'worker' } : { ...rest, status: 'DONE' }
    },
    specialist: async (_, __, name) => {
      executed.push(name)
      const told = { short_summary: 'Done.', key_decisions: [], next_instructions_for_supervisor: '' }
      const summary = { agent_name: name, step_id: 's', result: 'COMPLETED' as const, ...told }
      return { summary, agent: newAgentState() }
    },
    finalizer: async () => void executed.push('finalizer'),
    escalation: async () => void executed.push('escalation'),
  }
}

/** Executes like supervise.ts: from the beginning, or from the last checkpoint. */
async function goOn(saver: MemorySaver, executed: string[]): Promise<GraphState> {
  const graph = await buildGraph(['worker'], saver, countedNodes(executed))
  const read = await graph.read(THREAD)
  if (read?.isOver) return read.state
  return graph.run({ threadId: THREAD, execution: 'e' }, read ? null : begin(), 25)
}

const WHOLE = ['supervisor', 'worker', 'supervisor', 'finalizer']

test('a graph is over when it has come to its end, and not before', async () => {
  const saver = new DyingSaver()
  const executed: string[] = []
  assert.equal((await goOn(saver, executed)).supervisor.status, 'DONE')
  assert.deepEqual(executed, WHOLE)
  const graph = await buildGraph(['worker'], saver, countedNodes(executed))
  assert.equal((await graph.read(THREAD))?.isOver, true)
})

test('a process that dies at any write of a checkpoint leaves a graph that goes on, and repeats one node at most', async () => {
  const whole = new DyingSaver()
  await goOn(whole, [])
  assert.ok(whole.written > 8, `${whole.written} writes`)
  for (let diesAt = 1; diesAt <= whole.written; diesAt += 1) {
    const saver = new DyingSaver()
    saver.diesAt = diesAt
    const executed: string[] = []
    await assert.rejects(goOn(saver, executed), /the process died/)
    saver.diesAt = Number.POSITIVE_INFINITY
    const { supervisor } = await goOn(saver, executed)
    assert.deepEqual([supervisor.status, supervisor.history.length], ['DONE', 1], `it died at write ${diesAt}`)
    assert.ok(executed.length <= WHOLE.length + 1, `it died at write ${diesAt}: ${executed}`)
    assert.equal(executed.includes('escalation'), false, `it died at write ${diesAt}`)
  }
})
