// A project in which every text that people, models and tools can write is a payload. Each text ends with a mark of its
// own, by which a test finds the text on a page.
import assert from 'node:assert/strict'
import type { Agent } from '../../src/kernel/agent.ts'
import type { GraphObject } from '../../src/kernel/object.ts'
import type { Run } from '../../src/kernel/run.ts'
import type { Task } from '../../src/kernel/task.ts'
import type { ConsoleKit } from './console.ts'
import type { FixtureHttpServer } from './mcp-http.ts'
import { asName } from './payloads.ts'
import type { Call } from './process.ts'
import { withClient } from './test-server.ts'
import { until } from './until.ts'

export interface Field {
  mark: string
  payloads: readonly string[]
  /** True: the page shows Markdown, so that only the payloads that are HTML stay letter by letter. */
  isMarkdown: boolean
}

export interface HostileProject {
  id: string
  path: string
  fields: ReadonlyMap<string, Field>
  /** Addresses below the project's, and names of dialogs to open there. */
  places: readonly Place[]
  /** The text that the models of this project say. */
  said: string
}

export interface Place {
  address: string
  buttons?: readonly string[]
  /** A part of the text of a row that opens something. */
  opens?: string
  /** True: one of the few pages that are visited in the first tier. */
  isMain?: true
}

export interface HostileModels {
  /** A provider whose models answer by their names: `say`, `refuse`, `queen`, `supervisor`, and so on. */
  provider: string
  /** Their answers carry these texts from now on. */
  speak(words: Words): void
}

export interface Words {
  text: string
  todo: string
  question: string
  title: string
  description: string
  report: string
}

const LONGEST_MS = 60_000

export async function makeHostileProject(
  kit: ConsoleKit,
  dose: readonly string[],
  number: number,
  { models, mcp }: { models: HostileModels; mcp: FixtureHttpServer },
): Promise<HostileProject> {
  const fields = new Map<string, Field>()
  const note = (field: string, payloads: readonly string[], isMarkdown = false): string => {
    const mark = `mark-${field}-${number}.`
    fields.set(field, { mark, payloads, isMarkdown })
    return mark
  }
  const markOf = (field: string): string => fields.get(field)?.mark ?? assert.fail()
  let turn = 0
  /** One payload of the dose in a line; the names of a project take turns. */
  const name = (field: string): string => {
    const payload = asName(dose[turn++ % dose.length] ?? '')
    return `${payload} ${note(field, [payload])}`
  }
  const text = (field: string, isMarkdown = false): string => `${dose.join('\n\n')}\n\n${note(field, dose, isMarkdown)}`

  /** Text in a flow, where two braces begin a template. */
  const inFlow = (field: string): string => {
    const payloads = dose.map((payload) => payload.replaceAll('{{', '{ {'))
    return `${payloads.join('\n\n')}\n\n${note(field, payloads)}`
  }

  const send = async <Body>(route: string, call: Call): Promise<Body> => {
    const answer = await kit.muster.call<Body>(route, call)
    assert.ok(answer.status < 300, `${route}: ${answer.status} ${answer.text}`)
    return answer.body
  }
  const { id } = await kit.api<{ id: string }>('POST /api/projects', { name: name('project.name') })
  const path = `/api/projects/${id}`
  const post = <Body = { id: string }>(rest: string, body: object): Promise<Body> =>
    kit.api(`POST ${path}${rest}`, body)
  const planned = { provider: 'planned', name: 'any' }
  const model = (answer: string) => ({ provider: models.provider, name: answer })
  const said = text('model.text', true)
  models.speak({
    text: said,
    todo: text('todo'),
    question: text('chat.question'),
    title: name('plan.title'),
    description: text('plan.description'),
    report: text('queen.report'),
  })

  // Agents with every text, and what starts them.
  const boss = await post<Agent>('/agents', { name: name('senior.name'), model: model('queen') })
  const agent = await post<Agent>('/agents', {
    name: name('agent.name'),
    role: name('agent.role'),
    prompt: text('agent.prompt'),
    model: planned,
    tools: ['object_get', 'object_search', 'ask_human', 'spawn_agent'],
    competencies: [name('agent.competency')],
    senior_id: boss.id,
  })
  const steps = await post<Agent>('/agents', {
    name: name('sequential.name'),
    model: { provider: models.provider, name: name('model.name') },
    flow_type: 'sequential',
    steps: [{ prompt: text('step.prompt') }],
  })
  const hooked = await post<Agent>('/agents', {
    name: `Hooked ${number}`,
    model: model('say'),
    trigger_type: 'webhook',
  })
  const hook = await post<{ url: string; secret: string }>(`/agents/${hooked.id}/hooks`, { name: name('hook.name') })

  // Objects, their history and what joins them.
  const objectName = name('object.name')
  const object = await post<GraphObject>('/objects', {
    type: name('object.type'),
    key: name('object.key'),
    properties: {
      name: objectName,
      [name('property.name')]: text('property.value'),
      nested: { [name('nested.name')]: [1] },
    },
  })
  const other = await post<GraphObject>('/objects', { type: 'Plain', properties: { name: `Plain ${number}` } })
  await send(`PATCH ${path}/objects/${object.id}`, { body: { properties: { later: text('property.later') } } })
  await post('/relationships', { type: name('relationship.type'), from_id: object.id, to_id: other.id })

  // Runs: streamed text, tool calls, results, refusals, errors, sub-runs.
  const play = (plan: object, of = agent): Promise<Run> => post<Run>(`/agents/${of.id}/trigger`, { input: plan })
  const call = (tool: string, args: object) => ({ name: tool, args })
  const run = await play({
    tag: text('run.input'),
    steps: [
      {
        say: text('step.text', true),
        calls: [
          call('object_get', { id: object.id }),
          call('object_search', { q: text('tool.arguments') }),
          call(name('tool.name'), { x: 1 }),
        ],
      },
      { say: text('run.summary', true) },
    ],
  })
  const again = await play({ tag: 'again', steps: [{ say: text('other.text') }] })
  const failed = await play({ tag: text('run.error'), steps: [] })
  const delivered = await fetch(hook.url, {
    method: 'POST',
    headers: { authorization: `Bearer ${hook.secret}`, 'content-type': 'application/json' },
    body: JSON.stringify({ [name('webhook.key')]: text('webhook.body') }),
  })
  assert.equal(delivered.status, 202)
  const { run_id: hookRun } = (await delivered.json()) as { run_id: string } // the answer of a hook

  // The inbox: a suggestion with its diff, a question, its answer, a task of people, an exhausted budget.
  const suggesting = await post<Agent>('/agents', {
    name: name('suggesting.name'),
    model: planned,
    tools: ['object_update'],
    execution_mode: 'suggest',
  })
  const properties = { fresh: text('suggestion.after'), [name('suggestion.property')]: true }
  const update = call('object_update', { id: object.id, properties, reasoning: text('suggestion.reason') })
  await play({ tag: 'suggest', steps: [{ say: 'So.', calls: [update] }, { say: 'Done.' }] }, suggesting)
  const ask = (field: string) => call('ask_human', { question: text(field) })
  const answered = await play({
    tag: 'ask',
    steps: [{ say: 'I ask.', calls: [ask('question.answered')] }, { say: 'Ah.' }],
  })
  const [question] = (await kit.api<{ items: Task[] }>(`GET ${path}/tasks?kind=escalation&status=pending`)).items
  await send(`PATCH ${path}/tasks/${question?.id}`, { body: { status: 'completed', result: text('answer') } })
  await until(
    async () => (await kit.api<Run>(`GET ${path}/runs/${answered.id}`)).completed_at !== null,
    'the run goes on',
  )
  const asking = await play({ tag: 'ask', steps: [{ say: 'I ask.', calls: [ask('question')] }, { say: 'Ah.' }] })
  const forPeople = await post<Task>('/tasks', { title: name('people.title'), description: text('people.description') })

  // The organisation: a task that is done and reported, one that stays, messages to the senior.
  const worker = await post<Agent>('/agents', { name: name('worker.name'), model: model('say'), senior_id: boss.id })
  const work = await post<Task>('/tasks', {
    title: name('task.title'),
    description: text('task.description'),
    assigned_to: worker.id,
  })
  await until(
    async () => (await kit.api<Task>(`GET ${path}/tasks/${work.id}`)).completed_at !== null,
    'the work is done',
    LONGEST_MS,
  )
  for (const act of ['stop', 'start']) await post(`/agents/${worker.id}/${act}`, {})
  const reacting = await post<Agent>('/agents', {
    name: `Reacting ${number}`,
    model: model('refuse'),
    trigger_type: 'reaction',
    reaction_config: { objectTypes: [`React ${number}`] },
  })
  const reacted = await post('/objects', { type: `React ${number}`, properties: { name: text('reaction.object') } })

  // Flows: a definition, a run that ends, a run whose leaf fails, an alert.
  const leaf = (input: object) => ({ type: 'task', agent: agent.name, input })
  const told = leaf({ tag: inFlow('leaf.input'), steps: [{ say: inFlow('leaf.output') }] })
  const flow = await post('/flows', { name: name('flow.name'), root: { type: 'sequential', steps: [told] } })
  const flowRun = await post('/flow-runs', { flow_id: flow.id, input: { [name('flow.key')]: text('flow.input') } })
  const failing = { type: 'parallel', branches: [told, leaf({ tag: inFlow('leaf.error'), steps: [] })] }
  const failedFlow = await post('/flow-runs', { root: failing })
  const queen = { type: 'hierarchical', queen: boss.name, workers: [worker.name], goal: inFlow('queen.goal') }
  const queenFlow = await post('/flow-runs', { root: queen })
  const flowEnds = async (one: { id: string }): Promise<boolean> =>
    (await kit.api<{ completed_at: string | null }>(`GET ${path}/flow-runs/${one.id}`)).completed_at !== null
  for (const one of [flowRun, failedFlow, queenFlow]) await until(() => flowEnds(one), 'the flow ends', LONGEST_MS)
  await withClient(kit.databaseUrl, (db) =>
    db.query(
      `insert into flow_alerts (id, project_id, flow_run_id, kind, progress, suspected_cause, actions)
       select gen_random_uuid(), $1, id, 'slow', progress, $2, '["cancel"]' from flow_runs where id = $3`,
      [id, text('alert.cause'), flowRun.id],
    ),
  )

  // Prompts, a supervisor system, an eval.
  const part = (answer: string, promptId: string) => ({ prompt_id: promptId, model: model(answer) })
  const system = await kit.api<object>(`GET ${path}/systems/blue`)
  const parts = {
    supervisor: part('supervisor', 'supervisor_planner'),
    finalizer: part('finalizer', 'finalizer_agent'),
    escalation: part('escalation', 'hitl_escalation_handler'),
  }
  await send(`PUT ${path}/systems/blue`, { body: { ...system, ...parts } })
  const promptId = `notes_${number}`
  for (const field of ['prompt.first', 'prompt.second']) {
    const messages = [{ role: 'system', content: text(field) }]
    await send(`PUT ${path}/prompts/${promptId}/variants/blue`, { body: { messages } })
  }
  const cases = [{ task: text('eval.task'), expect: { contains: name('eval.contains') } }]
  const evaluation = await post('/evals', { name: name('eval.name'), cases, variants: ['blue'] })
  const evalEnds = async (): Promise<boolean> =>
    (await kit.api<{ status: string }>(`GET ${path}/evals/${evaluation.id}`)).status !== 'running'
  await until(evalEnds, 'the eval ends', LONGEST_MS)

  // Settings: keys, people, MCP tools.
  await post('/keys', { name: name('key.name'), role: 'viewer' })
  const email = `person${number}-${id.slice(-6)}@example.com`
  const { invitation_url: link } = await post<{ invitation_url: string }>('/members', { email, role: 'viewer' })
  await send(`POST /api/invitations/${new URL(link).pathname.split('/').at(-1)}/accept`, {
    body: { name: name('member.name'), password: 'long enough' },
    token: null,
    headers: { origin: kit.muster.url },
  })
  mcp.description = text('mcp.description')
  mcp.forgetSessions()
  await post('/mcp-servers', { name: 'fixture', url: mcp.url })
  const logs = async (): Promise<boolean> => {
    const { items } = await kit.api<{ items: { status: string }[] }>(`GET ${path}/agents/${reacting.id}/processing-log`)
    return items.some(({ status }) => status === 'failed')
  }
  await until(logs, 'the reaction fails', LONGEST_MS)
  await until(
    async () => (await kit.api<Run>(`GET ${path}/runs/${hookRun}`)).completed_at !== null,
    'the hook works',
    LONGEST_MS,
  )

  const flowPlaces = (one: string): Place[] => [
    { address: `/flows/${one}` },
    { address: `/flows/${one}?view=tasks&task=task_0` },
    { address: `/flows/${one}?view=tasks&task=task_1` },
    { address: `/flows/${one}?view=graph` },
  ]
  const leavesOf = async (one: { id: string }): Promise<Run[]> =>
    (await kit.api<{ items: Run[] }>(`GET ${path}/runs?flow_run_id=${one.id}`)).items
  const leaves = [...(await leavesOf(queenFlow)), ...(await leavesOf(failedFlow))]
  const places: Place[] = [
    ...leaves.map((each) => ({ address: `/runs/${each.id}` })),
    { address: `/runs/${run.id}`, isMain: true, buttons: ['Fork from here, after step 1', 'Trigger', 'Compare'] },
    { address: `/runs/${failed.id}` },
    { address: `/runs/${hookRun}` },
    { address: `/runs/${answered.id}` },
    { address: `/runs/${asking.id}` },
    { address: `/runs/${run.id}/compare/${again.id}` },
    { address: '/inbox', isMain: true, buttons: ['Reject'] },
    { address: `/inbox?item=${forPeople.id}` },
    ...['', '?tab=triggers', '?tab=runs', '?tab=budget'].map((tab) => ({ address: `/agents/${agent.id}${tab}` })),
    { address: `/agents/${agent.id}/edit`, isMain: true },
    { address: `/agents/${steps.id}` },
    { address: `/agents/${hooked.id}?tab=triggers` },
    { address: `/agents/${reacting.id}?tab=log` },
    { address: '/agents' },
    { address: `/objects/${object.id}`, isMain: true, buttons: ['Delete', 'Edit'] },
    { address: `/objects?type=${encodeURIComponent(object.type)}` },
    { address: `/objects/${reacted.id}` },
    { address: '/objects' },
    { address: '/runs' },
    { address: '/flows', buttons: ['Start flow'] },
    ...flowPlaces(flowRun.id),
    ...flowPlaces(failedFlow.id),
    ...flowPlaces(queenFlow.id),
    { address: `/flows/definitions/${flow.id}`, isMain: true },
    { address: '/organisation', buttons: ['New task'] },
    { address: `/organisation?agent=${worker.id}&tab=tasks`, isMain: true, opens: markOf('task.title') },
    { address: `/organisation?agent=${boss.id}&tab=messages` },
    { address: `/organisation?agent=${boss.id}&tab=reports` },
    { address: `/prompts?prompt=${promptId}&variant=blue`, isMain: true, buttons: ['Roll back to version 1'] },
    { address: '/evals' },
    { address: `/evals/${evaluation.id}`, isMain: true },
    ...['providers', 'mcp', 'keys', 'members', 'limits', 'audit'].map((section) => ({
      address: `/settings/${section}`,
    })),
  ]
  return { id, path, fields, places, said }
}
