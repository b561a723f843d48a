// A project whose supervisor system gives the answers that the test chooses, over HTTP.
import type { ModelRequest } from '../../src/kernel/model-call.ts'
import type { AgentRunAnswer } from '../../src/kernel/supervisor.ts'
import { createTestApp, type TestAppOptions } from './app.ts'
import { createScriptedModel, type ScriptedAnswer } from './scripted-model.ts'

type Reply = string | object | ScriptedAnswer | ((request: ModelRequest, call: number) => unknown)

/** The answers of each node. A list is used item by item, and its last item is repeated. */
export interface Replies {
  supervisor?: Reply | Reply[]
  /** The work and the summary of each specialist. */
  work?: Record<string, Reply | Reply[]>
  summary?: Record<string, Reply | Reply[]>
  finalizer?: Reply | Reply[]
  escalation?: Reply | Reply[]
}

export const delegate = (agent: string, plan: object[] = [], instructions = 'Do it.') => ({
  plan,
  action: 'delegate',
  agent,
  instructions,
})
export const finish = (plan: object[] = []) => ({ plan, action: 'finish' })
export const summary = (result = 'COMPLETED', short = 'It is done.') => ({
  result,
  short_summary: short,
  key_decisions: ['I did it.'],
  next_instructions_for_supervisor: 'Go on.',
})

export async function createSupervisor(replies: Replies = {}, options: TestAppOptions = {}) {
  const requests: { node: string; request: ModelRequest }[] = []
  const counts = new Map<string, number>()
  const models = new Map(options.models)
  const kit = await createTestApp({ idleTimeoutMs: 500, ...options, models })
  const project = await kit.createProject('Supervised')
  const answerOf = async (node: string, reply: Reply | Reply[] | undefined, request: ModelRequest) => {
    requests.push({ node, request })
    const call = counts.get(node) ?? 0
    counts.set(node, call + 1)
    const one = Array.isArray(reply) ? (reply[Math.min(call, reply.length - 1)] ?? '') : (reply ?? '')
    const said = typeof one === 'function' ? await (one as (r: ModelRequest, c: number) => unknown)(request, call) : one
    return isScripted(said) ? said : { text: typeof said === 'string' ? said : JSON.stringify(said) }
  }
  const model = (node: string, pick: (request: ModelRequest) => [string, Reply | Reply[] | undefined]) => {
    models.set(
      node,
      createScriptedModel((request) => answerOf(...pick(request), request)),
    )
    return { provider: 'test', name: node, max_output_tokens: 1_000 }
  }
  const part = (node: string, promptId: string, reply: () => Reply | Reply[] | undefined) => ({
    prompt_id: promptId,
    model: model(node, () => [node, reply()]),
  })
  const specialist = (name: string, tools: string[] = []) => ({
    name,
    prompt_id: name,
    tools,
    model: model(name, (request) =>
      request.answerSchema?.name === 'agent_summary'
        ? [`${name} summary`, replies.summary?.[name] ?? summary()]
        : [name, replies.work?.[name] ?? 'I did what I was told.'],
    ),
  })
  const config = {
    supervisor: part('supervisor', 'supervisor_planner', () => replies.supervisor ?? finish()),
    specialists: [specialist('research_agent'), specialist('transform_agent')],
    finalizer: part('finalizer', 'finalizer_agent', () => replies.finalizer ?? 'The final answer.'),
    escalation: part('escalation', 'hitl_escalation_handler', () => replies.escalation ?? 'What shall we do?'),
    traffic: 100,
  }
  const base = `/api/projects/${project.id}`
  const headers = { 'x-project-id': project.id }
  const put = (variant: string, body: object) => kit.call(`PUT ${base}/systems/${variant}`, { body })
  const set = await put('blue', config)
  if (set.status !== 200) throw new Error(set.text)
  return {
    ...kit,
    project,
    base,
    config,
    requests,
    replies,
    specialist,
    models,
    put,
    headers,
    asked: (node: string) => requests.filter((each) => each.node === node).map(({ request }) => request),
    run: (task: string, more: { options?: object; context?: object } = {}) =>
      kit.call<AgentRunAnswer & { error?: { code: string; message: string; details: Record<string, unknown> } }>(
        'POST /v1/agent/run',
        {
          headers,
          body: { input: { task, ...(more.context ? { context: more.context } : {}) }, options: more.options ?? {} },
        },
      ),
    read: (runId: string) => kit.call<AgentRunAnswer>(`GET /v1/agent/runs/${runId}`, { headers }),
    get: <Body>(path: string) => kit.call<Body>(`GET ${base}${path}`).then(({ body }) => body),
  }
}

const isScripted = (said: unknown): said is ScriptedAnswer =>
  typeof said === 'object' && said !== null && ['text', 'calls', 'fail', 'waitFor'].some((key) => key in said)
