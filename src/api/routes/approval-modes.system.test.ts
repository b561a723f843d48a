// The table of the modes: which calls of which tools wait for a person, for an agent, a sub-agent, an agent leaf of a flow
// and a specialist. All calls stand in one step, so they also wait side by side.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startMcpHttp } from '../../../test/kit/mcp-http.ts'
import { testTool } from '../../../test/kit/run-worker.ts'
import { createScriptedModel, type ScriptedAnswer } from '../../../test/kit/scripted-model.ts'
import { createSupervisor, delegate, finish } from '../../../test/kit/supervisor.ts'
import { until } from '../../../test/kit/until.ts'
import type { Agent } from '../../kernel/agent.ts'
import type { ModelRequest } from '../../kernel/model-call.ts'
import type { ExecutionMode } from '../../kernel/rights.ts'
import type { Run, Step } from '../../kernel/run.ts'
import { suggestedCall, type Task } from '../../kernel/task.ts'

const seen: { tool: string; args: unknown }[] = []
const tool = (name: string, effect: 'readonly' | 'keyed' | 'unsafe') =>
  testTool(name, async (args) => ({ n: seen.push({ tool: name, args }) }), { effect })
let answer: (request: ModelRequest) => ScriptedAnswer = () => ({ text: 'Nothing to do.' })
const work = (request: ModelRequest): ScriptedAnswer => answer(request)
const kit = await createSupervisor(
  { supervisor: () => nextDecision(), work: { research_agent: work } },
  {
    models: new Map([['script', createScriptedModel(work)]]),
    tools: [tool('look', 'readonly'), tool('pay', 'keyed'), tool('refund', 'unsafe')],
    waits: { waitMs: 60_000 },
  },
)
const { base, project, config } = kit
const http = await startMcpHttp()
const mcp = await kit.call(`POST ${base}/mcp-servers`, { body: { name: 'desk', url: http.url } })
assert.equal(mcp.status, 201, mcp.text)

const names = ['look', 'pay', 'refund', 'mcp:desk/echo', 'mcp:desk/add', 'http_fetch', 'object_create', 'task_create']
const NOWHERE = 'http://127.0.0.1:1/'

interface Kind {
  /** Named as in a suggestion, and as the model calls it. */
  listed: string
  called?: string
  args: Record<string, unknown>
  takes: 'nothing' | 'both' | 'reasoning'
  /** What becomes of a call in suggest mode. */
  suggested: 'made' | 'waits' | 'proposed'
}
const kinds: Record<string, Kind> = {
  'app, readonly': { listed: 'look', args: { n: 1 }, takes: 'nothing', suggested: 'made' },
  'app, keyed': { listed: 'pay', args: { n: 2 }, takes: 'both', suggested: 'waits' },
  'app, unsafe': { listed: 'refund', args: { n: 3 }, takes: 'both', suggested: 'waits' },
  'MCP, readonly': {
    listed: 'mcp:desk/echo',
    called: 'mcp_desk_echo',
    args: { text: 'x' },
    takes: 'nothing',
    suggested: 'made',
  },
  'MCP, keyed': {
    listed: 'mcp:desk/add',
    called: 'mcp_desk_add',
    args: { a: 1, b: 2 },
    takes: 'both',
    suggested: 'waits',
  },
  'http read': { listed: 'http_fetch', args: { url: NOWHERE }, takes: 'nothing', suggested: 'made' },
  'http write': { listed: 'http_fetch', args: { url: NOWHERE, method: 'POST' }, takes: 'both', suggested: 'waits' },
  object: { listed: 'object_create', args: { type: 'Note', properties: {} }, takes: 'both', suggested: 'proposed' },
  task: { listed: 'task_create', args: { title: 'Later' }, takes: 'nothing', suggested: 'made' },
}

interface Mode {
  execution_mode: ExecutionMode
  apply?: 'execute' | 'suggest'
  require_approval?: string[]
  /** The outcome of a call of this kind. */
  outcome: (kind: Kind) => string
}
const made = (): string => 'made'
const waits = (): string => 'waits'
const named = ['look', 'pay', 'refund', 'mcp:desk/*', 'http_fetch', 'object_create', 'task_create']
const modes: Record<string, Mode> = {
  execute: { execution_mode: 'execute', outcome: made },
  suggest: { execution_mode: 'suggest', outcome: ({ suggested }) => suggested },
  'hybrid, execute': { execution_mode: 'hybrid', apply: 'execute', outcome: made },
  'hybrid, suggest': { execution_mode: 'hybrid', apply: 'suggest', outcome: ({ suggested }) => suggested },
  'execute, all named': { execution_mode: 'execute', require_approval: named, outcome: waits },
  'suggest, all named': { execution_mode: 'suggest', require_approval: named, outcome: waits },
  'hybrid, execute, all named': {
    execution_mode: 'hybrid',
    apply: 'execute',
    require_approval: named,
    outcome: waits,
  },
}

type Rights = Pick<Agent, 'execution_mode' | 'require_approval'>
let count = 0
const agent = (input: object): Promise<Agent> => kit.createAgent(project.id, { name: `agent ${++count}`, ...input })
const begin = async ({ id }: Agent): Promise<void> => {
  const headers = { prefer: 'respond-async' }
  const started = await kit.call(`POST ${base}/agents/${id}/trigger`, { body: { input: 'Go.' }, headers })
  assert.equal(started.status, 202, started.text)
}

/** Each starts a run that makes the calls within the rights; the agent that makes them has all rights if it is not alone. */
const actors: Record<string, (rights: Rights) => Promise<void>> = {
  agent: async (rights) => begin(await agent({ tools: names, ...rights })),
  'sub-agent': async (rights) => {
    const child = await agent({ tools: names })
    const parent = await agent({ tools: [...names, 'spawn_agent'], prompt: 'I am the parent.', ...rights })
    const calls = answer
    answer = (request) => {
      if (!JSON.stringify(request.prompt).includes('I am the parent.')) return calls(request)
      const args = { agent: child.name, input: 'Go.' }
      return hasResult(request) ? { text: 'Done.' } : { calls: [{ name: 'spawn_agent', args }] }
    }
    await begin(parent)
  },
  'agent leaf': async (rights) => {
    const leaf = await agent({ tools: names })
    const root = { type: 'task', agent: leaf.name, input: 'Go.' }
    const flow = await kit.call<{ name: string }>(`POST ${base}/flows`, { body: { name: `flow ${++count}`, root } })
    await begin(await agent({ flow_type: 'flow', flow: flow.body.name, model: null, ...rights }))
  },
  specialist: async (rights) => {
    const [research, transform] = config.specialists
    const { status, text } = await kit.put('blue', {
      ...config,
      specialists: [{ ...research, tools: names, ...rights }, transform],
    })
    assert.equal(status, 200, text)
    decisions.push(delegate('research_agent'), finish())
    void kit.run('Do it.')
  },
}
const decisions: object[] = []
function nextDecision(): object {
  return decisions.shift() ?? finish()
}

const hasResult = ({ prompt }: ModelRequest): boolean => prompt.some(({ role }) => role === 'tool')

function argumentsOf({ args, takes }: Kind, { execution_mode: mode, apply }: Mode): Record<string, unknown> {
  if (takes === 'nothing' || mode === 'execute') return args
  return { ...args, reasoning: 'It must be.', ...(apply ? { apply } : {}) }
}

for (const [actor, start] of Object.entries(actors)) {
  for (const [name, mode] of Object.entries(modes)) {
    test(`${actor}, ${name}: the calls that need a person wait, and the others are made`, async () => {
      const rows = Object.values(kinds)
      const calls = rows.map((kind, at) => ({
        id: `c${at}`,
        name: kind.called ?? kind.listed,
        args: argumentsOf(kind, mode),
      }))
      let offered: ModelRequest['tools'] = []
      answer = (request) => {
        if (hasResult(request)) return { text: 'Done.' }
        offered = request.tools
        return { text: 'I do all of it.', calls }
      }
      seen.length = 0
      const before = (await newestRun()) ?? null
      await start({ execution_mode: mode.execution_mode, require_approval: mode.require_approval ?? [] })
      const expected = rows.map((kind) => mode.outcome(kind))
      const isStill = expected.includes('waits')
      let runId = ''
      await until(async () => {
        const found = await newestRun()
        if (!found || found === before) return false
        runId = found
        const run = await kit.get<Run>(`/runs/${runId}`)
        return isStill ? run.pause_reason === 'human' : run.completed_at !== null
      }, 'the run waits or has ended')
      const tasks = await suggestionsOf(runId)
      assert.deepEqual(await outcomesOf(runId, tasks, calls), expected)
      requireFaces(offered, mode)

      const waiting = tasks.filter((task) => suggestedCall(task) !== null)
      const results = await Promise.all(waiting.map(({ id }) => kit.call(`POST ${base}/tasks/${id}/approve`)))
      for (const { status, text } of results) assert.equal(status, 200, text)
      await until(async () => (await kit.get<Run>(`/runs/${runId}`)).completed_at !== null, 'the run has ended')
      const { status, error_message: message } = await kit.get<Run>(`/runs/${runId}`)
      assert.equal(status, 'completed', message ?? '')
      // The tools see their own arguments alone, and each call once.
      assert.deepEqual(
        seen.toSorted((a, b) => (a.tool < b.tool ? -1 : 1)),
        [
          { tool: 'look', args: { n: 1 } },
          { tool: 'pay', args: { n: 2 } },
          { tool: 'refund', args: { n: 3 } },
        ],
      )
      const { items } = await kit.get<{ items: Step[] }>(`/runs/${runId}/steps`)
      const failed = items.filter((step) => step.kind === 'tool' && step.is_error && step.name !== 'http_fetch')
      assert.deepEqual(failed, [])
    })
  }
}

/** The run that made calls last. */
async function newestRun(): Promise<string | undefined> {
  const { rows } = await kit.pool.query<{ run_id: string }>(
    `select run_id from run_events where kind = 'tool.started' and data->>'name' = 'look' and origin_seq is null
     order by at desc, seq desc limit 1`,
  )
  return rows[0]?.run_id
}

async function suggestionsOf(runId: string): Promise<Task[]> {
  const { items } = await kit.get<{ items: Task[] }>('/tasks?kind=suggestion&status=pending&limit=200')
  return items.filter((task) => task.run_id === runId)
}

async function outcomesOf(runId: string, tasks: readonly Task[], calls: readonly { id: string }[]): Promise<string[]> {
  const { items } = await kit.get<{ items: Step[] }>(`/runs/${runId}/steps`)
  const results = new Map(items.flatMap((step) => (step.kind === 'tool' ? [[step.call_id, step.result]] : [])))
  const waiting = new Set(tasks.map((task) => (suggestedCall(task) ? task.metadata.call_id : null)))
  for (const task of tasks) assert.equal(task.reasoning?.trim() === '', false, 'a suggestion without a reason')
  return calls.map(({ id }) => {
    if (waiting.has(id)) return results.has(id) ? 'made and waits' : 'waits'
    if (!results.has(id)) return 'lost'
    return JSON.stringify(results.get(id)).includes('"suggested":true') ? 'proposed' : 'made'
  })
}

/** Tools show the added arguments in the modes that use them and where they are named; other tools do not. */
function requireFaces(tools: ModelRequest['tools'], { execution_mode: mode, require_approval: all }: Mode): void {
  const propertiesOf = (name: string): string[] => {
    const schema = tools.find((each) => each.name === name)?.inputSchema as { properties?: object } | undefined
    return Object.keys(schema?.properties ?? {}).filter((key) => key === 'reasoning' || key === 'apply')
  }
  const reason = all ? ['reasoning'] : []
  const added = mode === 'execute' ? reason : mode === 'suggest' ? ['reasoning'] : ['apply', 'reasoning']
  for (const name of ['pay', 'refund', 'mcp_desk_add', 'http_fetch']) {
    assert.deepEqual(propertiesOf(name).toSorted(), added, name)
  }
  for (const name of ['look', 'mcp_desk_echo']) assert.deepEqual(propertiesOf(name), reason, name)
}
