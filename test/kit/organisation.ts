// A project with agents that work on tasks, over HTTP, with models whose answers the test chooses.
import assert from 'node:assert/strict'
import type { Agent } from '../../src/kernel/agent.ts'
import type { AgentMessage } from '../../src/kernel/agent-message.ts'
import type { Model, ModelRequest } from '../../src/kernel/model-call.ts'
import type { Run, Step } from '../../src/kernel/run.ts'
import type { Task } from '../../src/kernel/task.ts'
import { createTestApp, type TestAppOptions } from './app.ts'
import { createScriptedModel, type ScriptedAnswer } from './scripted-model.ts'
import { until } from './until.ts'

/** The answers to decisions, or to the work itself. A function decides by the request. */
export interface Reply {
  delegation_decision?: unknown
  task_plan?: unknown
  work?: string | ScriptedAnswer | ((request: ModelRequest) => ScriptedAnswer | Promise<ScriptedAnswer>)
}

const EMPTY_PLAN = { subtasks: [] }
const KEEP = { delegate: false, subordinate: null, reasoning: 'I do it myself.' }

/** An answer to a decision in exactly these words; other answers are written as JSON. */
export const words = (text: string): { [WORDS]: string } => ({ [WORDS]: text })
const WORDS = Symbol('words')

function written(reply: unknown, request: ModelRequest): ScriptedAnswer {
  const answer: unknown = typeof reply === 'function' ? reply(request) : reply
  const isInWords = typeof answer === 'object' && answer !== null && WORDS in answer
  return { text: isInWords ? String(answer[WORDS]) : JSON.stringify(answer) }
}

export async function createOrganisation(
  settings: Record<string, unknown> = {},
  options: Pick<TestAppOptions, 'log' | 'tools' | 'onEvents' | 'functions'> = {},
) {
  const models = new Map<string, Model>()
  const kit = await createTestApp({ models, waits: { waitMs: 20_000 }, ...options })
  const project = await kit.createProject()
  const base = `/api/projects/${project.id}`
  await patchSettings(settings)
  let named = 0

  async function patchSettings(patch: Record<string, unknown>): Promise<void> {
    if (Object.keys(patch).length === 0) return
    const answer = await kit.call(`PATCH ${base}/settings`, { body: patch })
    assert.equal(answer.status, 200, JSON.stringify(answer.body))
  }

  /**
   * An agent whose model gives these replies: an object is the reply to every task, a list has one reply for each task.
   */
  async function agent(fields: Record<string, unknown>, reply: Reply = {}) {
    const name = String(fields.name ?? `agent ${++named}`)
    const model = createScriptedModel(async (request) => answerTo(request, reply))
    models.set(`of ${name}`, model)
    const made = await kit.createAgent(project.id, {
      ...fields,
      name,
      model: { provider: 'test', name: `of ${name}` },
    })
    return Object.assign(made, { requests: model.requests })
  }

  async function answerTo(request: ModelRequest, reply: Reply): Promise<ScriptedAnswer> {
    const asked = request.answerSchema?.name
    if (asked === 'delegation_decision') return written(reply.delegation_decision ?? KEEP, request)
    if (asked === 'task_plan') return written(reply.task_plan ?? EMPTY_PLAN, request)
    const { work = 'Done.' } = reply
    if (typeof work === 'function') return work(request)
    return typeof work === 'string' ? { text: work } : work
  }

  const read = async <Body>(path: string): Promise<Body> => {
    const answer = await kit.call<Body>(`GET ${base}${path}`)
    assert.equal(answer.status, 200, JSON.stringify(answer.body))
    return answer.body
  }
  const list = async <Item>(path: string): Promise<Item[]> =>
    (await read<{ items: Item[] }>(`${path}${path.includes('?') ? '&' : '?'}limit=200`)).items

  async function heartbeat(): Promise<string | null> {
    const { rows } = await kit.pool.query<{ at: Date }>('select at from org_rounds')
    return rows[0]?.at.toISOString() ?? null
  }

  return {
    ...kit,
    base,
    project,
    models,
    patchSettings,
    agent,
    read,
    list,
    give: async (fields: Record<string, unknown>): Promise<Task> => {
      const answer = await kit.call<Task>(`POST ${base}/tasks`, { body: fields })
      assert.equal(answer.status, 201, JSON.stringify(answer.body))
      return answer.body
    },
    task: (id: string) => read<Task>(`/tasks/${id}`),
    tasksOf: (agentId: string) => list<Task>(`/tasks?assigned_to=${agentId}`),
    agentNow: (id: string) => read<Agent>(`/agents/${id}`),
    runsOf: (agentId: string) => list<Run>(`/runs?agent_id=${agentId}`),
    stepsOf: (runId: string) => list<Step>(`/runs/${runId}/steps`),
    messagesOf: (agentId: string) => list<AgentMessage>(`/agents/${agentId}/messages`),
    subtasksOf: async (taskId: string) =>
      (await list<Task>('/tasks')).filter((task) => task.parent_task_id === taskId).reverse(),
    post: (path: string, body?: object) =>
      kit.call<Record<string, unknown>>(`POST ${base}${path}`, body ? { body } : {}),
    patch: (path: string, body: object) => kit.call<Record<string, unknown>>(`PATCH ${base}${path}`, { body }),
    /** Waits until the agent has this status. */
    untilAgent: (agentId: string, status: Agent['status']): Promise<Agent> =>
      untilTrue(async () => {
        const agent = await read<Agent>(`/agents/${agentId}`)
        return agent.status === status ? agent : null
      }, `the agent is ${status}`),
    /** Waits until two rounds have passed, because only the second surely began after this call. */
    rounds: async (count = 2): Promise<void> => {
      for (let round = 0; round < count; round++) {
        const at = await heartbeat()
        await untilTrue(async () => (await heartbeat()) !== at, 'another round has passed')
      }
    },
    /** Waits until the task has this status. */
    until: async (taskId: string, status: Task['status']): Promise<Task> => {
      const found = await untilTrue(async () => {
        const task = await read<Task>(`/tasks/${taskId}`)
        return task.status === status ? task : null
      }, `the task is ${status}`)
      return found
    },
  }
}

export async function untilTrue<Value>(
  look: () => Promise<Value | null | false | undefined>,
  what: string,
): Promise<Value> {
  let seen: Value | null | false | undefined
  await until(async () => {
    seen = await look()
    return Boolean(seen)
  }, what)
  return seen || assert.fail(what)
}
