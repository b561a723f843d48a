// Uses every route of a part of the API with success. The bodies contain a word that a test can search for.
import assert from 'node:assert/strict'
import { insertAlert } from './alerts.ts'
import type { Muster } from './process.ts'
import { withClient } from './test-server.ts'
import { until } from './until.ts'

export interface Caller {
  /** A call that is part of the use. */
  ask: Muster['call']
  /** A call that only prepares the use. */
  call: Muster['call']
  word: string
  databaseUrl: string
}

/** A working team of one agent. */
export async function useOrganisation({ ask, word }: Caller, project: string): Promise<void> {
  const path = `/api/projects/${project}`
  const model = { provider: 'offline', name: 'offline' }
  const made = await ask<{ id: string }>(`POST ${path}/agents`, {
    body: { name: `${word} at work`, model, token_allocation: 1_000_000 },
  })
  const agent = `${path}/agents/${made.body.id}`
  await ask(`POST ${path}/tasks`, { body: { title: word, assigned_to: made.body.id } })
  for (const verb of ['stop', 'start', 'restart']) {
    await ask(`POST ${agent}/${verb}`)
    await ask(`POST ${path}/org/${verb}`)
  }
  await ask(`POST ${agent}/budget`, { body: { add: 1 } })
  await ask(`GET ${agent}/messages`)
  await ask(`GET ${path}/org`)
  await ask(`GET ${path}/org/health`)
  await ask(`GET ${path}/events`)
  await ask('GET /api/events')
  await ask(`GET ${path}/search?q=${word}`)
  await ask(`GET ${path}/usage`)
}

export async function useFlows({ ask, call, word, databaseUrl }: Caller, project: string): Promise<void> {
  const path = `/api/projects/${project}`
  type Made = { id: string; status: string }
  const model = { provider: 'offline', name: 'offline' }
  await call(`POST ${path}/agents`, { body: { name: 'a leaf', model } })
  const root = { type: 'task', agent: 'a leaf', id: 'leaf', input: word }
  await ask(`POST ${path}/flows/validate`, { body: { root } })
  await ask(`POST ${path}/flows/recommend`, { body: { workload: word } })
  await ask(`GET ${path}/flow-templates`)
  const flow = (await ask<Made>(`POST ${path}/flows`, { body: { name: word, root } })).body.id
  await ask(`GET ${path}/flows`)
  await ask(`GET ${path}/flows/${flow}`)
  await ask(`PATCH ${path}/flows/${flow}`, { body: { name: `${word} again` } })
  // The project is halted, so its agent does not answer and the run is not over yet.
  await call(`POST ${path}/halt`)
  const run = (await ask<Made>(`POST ${path}/flow-runs`, { body: { flow_id: flow, input: word } })).body.id
  await ask(`POST ${path}/flow-runs/${run}/workers`, { body: { add: 1 } })
  await ask(`PATCH ${path}/flow-runs/${run}`, { body: { timeout: 900_000, workers: 3 } })
  const dealt = { type: 'adaptive', topology: 'hierarchical', workers: 1, tasks: [root], switch: false }
  const dealtRun = (await ask<Made>(`POST ${path}/flow-runs`, { body: { root: dealt } })).body.id
  await call(`POST ${path}/unhalt`)
  await ask(`POST ${path}/flow-runs/${dealtRun}/topology`, { body: { topology: 'mesh' } })
  await ask(`GET ${path}/flow-runs/${dealtRun}/topology`)
  const alert = await withClient(databaseUrl, (db) => insertAlert(db, project, dealtRun))
  await ask(`GET ${path}/alerts`)
  await ask(`POST ${path}/alerts/${alert}/ack`)
  // The stream ends with its run.
  await ask(`GET ${path}/flow-runs/${run}/events`)
  await ask(`GET ${path}/flow-runs`)
  for (const part of ['', '/tasks', '/trace', '/metrics', '/output']) await ask(`GET ${path}/flow-runs/${run}${part}`)
  const { body } = await call<Made>(`GET ${path}/flow-runs/${run}`)
  assert.equal(body.status, 'completed')
  await ask(`POST ${path}/flow-runs/${run}/cancel`)
  const failing = { ...root, input: '{{input.absent}}' }
  const failed = (await ask<Made>(`POST ${path}/flow-runs`, { body: { root: failing, input: word } })).body.id
  await ask(`GET ${path}/flow-runs/${failed}/events`)
  await ask(`POST ${path}/flow-runs/${failed}/resume`, { body: {} })
  await ask(`DELETE ${path}/flows/${flow}`)
}

/** An eval that does not run, because its project is halted until the eval is cancelled. */
export async function useEvals({ ask, call, word }: Caller, project: string): Promise<void> {
  const path = `/api/projects/${project}`
  await call(`POST ${path}/halt`)
  const made = await ask<{ id: string }>(`POST ${path}/evals`, {
    body: { name: word, variants: ['blue', 'green'], cases: [{ task: word, expect: { contains: word } }] },
  })
  await ask(`GET ${path}/evals`)
  await ask(`GET ${path}/evals/${made.body.id}`)
  const context = { scenario: 'eval_comparison', eval_id: made.body.id }
  await ask('POST /v1/genui/layout', { headers: { 'x-project-id': project }, body: { context } })
  await ask(`POST ${path}/evals/${made.body.id}/cancel`)
  await call(`POST ${path}/unhalt`)
}

/** Objects, their edges, and an agent that reacts to the objects, suggests changes and then reaches its step limit. */
export async function useGraph({ ask, call, word }: Caller, path: string, task: string): Promise<void> {
  type Made = { id: string }
  const made = async (route: string, body: object): Promise<string> => (await ask<Made>(route, { body })).body.id
  const agent = await made(`POST ${path}/agents`, {
    name: 'a reactor',
    prompt: 'object_update {"properties": {"seen": true}, "reasoning": "It was."}',
    model: { provider: 'offline', name: 'offline' },
    tools: ['object_update'],
    trigger_type: 'reaction',
    reaction_config: { objectTypes: ['T'], events: ['created'] },
    execution_mode: 'suggest',
    max_steps: 1,
  })
  const object = await made(`POST ${path}/objects`, { type: 'T', properties: { word } })
  await made(`POST ${path}/objects`, { type: 'T', properties: { word } })
  const failed = `${path}/agents/${agent}/processing-log?status=failed`
  const entries = async () => (await call<{ items: Made[] }>(`GET ${failed}`)).body.items
  await until(async () => (await entries()).length === 2, 'both were reacted to')
  await ask(`GET ${failed}`)
  await ask(`POST ${path}/agents/${agent}/processing-log/${(await entries())[0]?.id}/retry`)
  const suggested = await ask<{ items: Made[] }>(`GET ${path}/tasks?kind=suggestion&status=pending`)
  const [first, second] = suggested.body.items
  await ask(`POST ${path}/tasks/${first?.id}/approve`)
  await ask(`POST ${path}/tasks/${second?.id}/reject`, { body: { reason: word } })
  await ask(`POST ${path}/tasks/approve`, { body: { ids: [task] } })
  await ask(`GET ${path}/objects?q=${word}`)
  await ask(`PUT ${path}/objects/by-key`, { body: { type: 'T', key: word, properties: { word } } })
  await ask(`GET ${path}/objects?key=${word}`)
  await ask(`PATCH ${path}/objects/${object}`, { body: { properties: { more: word } } })
  for (const part of ['', '/history', '/relationships']) await ask(`GET ${path}/objects/${object}${part}`)
  const edge = await made(`POST ${path}/relationships`, { type: 'r', from_id: object, to_id: object })
  await ask(`DELETE ${path}/relationships/${edge}`)
  await ask(`DELETE ${path}/objects/${object}`)
  await ask(`GET ${path}/schedule`)
  await ask(`GET ${path}/schedule/preview?cron_schedule=0+9+*+*+1-5`)
}

/** Layouts of each kind of row. */
export async function useLayouts({ ask, call, word }: Caller, project: string): Promise<void> {
  const headers = { 'x-project-id': project }
  const lay = (context: object) => ask('POST /v1/genui/layout', { headers, body: { context } })
  type Listed = { items: { id: string }[] }
  const newest = async (list: string): Promise<string> =>
    (await call<Listed>(`GET /api/projects/${project}/${list}&limit=1`)).body.items[0]?.id ?? assert.fail(list)
  await lay({ scenario: 'generic', title: word, said: word })
  await lay({ scenario: 'approval', task_id: await newest('tasks?kind=suggestion') })
  await lay({ scenario: 'run_summary', run_id: await newest('runs?status=completed') })
}
