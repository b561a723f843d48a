// A rolling deploy: processes with other tools are replaced one by one while runs of all agents are started. No run fails,
// whichever process meets it, and a run whose tool is nowhere waits.
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Run } from '../../src/kernel/run.ts'
import type { Task } from '../../src/kernel/task.ts'
import { createUnusedDatabase } from '../kit/database.ts'
import { type Plan, startFakeModel } from '../kit/fake-model.ts'
import { made, ONE_FOR_ALL_SERVERS } from '../kit/made.ts'
import { type Muster, makeFolder, startMuster } from '../kit/process.ts'
import { planned, times } from '../kit/run-harness.ts'
import { until } from '../kit/until.ts'

const tool = (name: string): string => `
    ${name}: {
      description: 'Does ${name}.',
      input: { type: 'object', properties: {} },
      effect: 'keyed',
      execute: async () => {
        await new Promise((resolve) => setTimeout(resolve, 30))
        return { tool: '${name}', pid: process.pid }
      },
    },`
const appOf = (...names: string[]): string => `export default { tools: {${names.map(tool).join('')}\n} }\n`

/** Calls the tool in three steps, so that many runs are handed back in the middle. */
const work = (name: string): Plan =>
  planned(...times(3, () => ({ say: 'I do it now. ', calls: [{ name, args: {} }] })), { say: 'It is done.' })

test('D3 a rolling deploy of processes with other tools, under load: no run fails', async (t) => {
  const folder = await makeFolder(t)
  await writeFile(join(folder, 'old.ts'), appOf('a'))
  await writeFile(join(folder, 'new.ts'), appOf('a', 'b'))
  const databaseUrl = await createUnusedDatabase()
  const model = await startFakeModel(t)
  const start = (app: string | null, env: Record<string, string> = {}): Promise<Muster> =>
    startMuster(t, {
      databaseUrl,
      cwd: folder,
      env: { ...ONE_FOR_ALL_SERVERS, MUSTER_DEMO: 'off', ...(app ? { MUSTER_APP: app } : {}), ...env },
    })

  let servers = [await start('./old.ts'), await start('./old.ts')]
  const any = (): Muster => servers[Math.floor(Math.random() * servers.length)] ?? assert.fail()
  const provider = { name: 'planned', kind: 'openai-compatible', base_url: model.url, api_key: 'any' }
  await made(any(), 'POST /api/providers', provider)
  const project = `/api/projects/${await made(any(), 'POST /api/projects', { name: 'deployed' })}`
  const agentWith = (name: string) => ({
    name: `uses ${name}`,
    model: { provider: 'planned', name: 'planned' },
    tools: [name],
  })
  const a = await made(any(), `POST ${project}/agents`, agentWith('a'))
  const refused = await any().call(`POST ${project}/agents`, { body: agentWith('b') })
  assert.deepEqual([refused.status, /There is no tool called \\?"b/.test(refused.text)], [400, true], refused.text)

  const accepted: string[] = []
  const trigger = async (name: 'a' | 'b', agentId: string): Promise<string> => {
    const headers = { prefer: 'respond-async' }
    const answer = await any().call<Run>(`POST ${project}/agents/${agentId}/trigger`, {
      body: { input: work(name) },
      headers,
    })
    assert.equal(answer.status, 202, answer.text)
    accepted.push(answer.body.id)
    return answer.body.id
  }
  const replace = async (place: number, app: string): Promise<void> => {
    const next = await start(app)
    const [gone] = servers.splice(place, 1, next)
    assert.deepEqual(await gone?.kill('SIGTERM'), { code: 0, signal: null }, gone?.stderr())
  }
  const runOf = async (id: string): Promise<Run> => (await any().call<Run>(`GET ${project}/runs/${id}`)).body
  const allEnded = async (): Promise<boolean> => {
    for (const id of accepted) if ((await runOf(id)).completed_at === null) return false
    return true
  }
  /** Starts runs of these agents while `change` is made, and at least so many. */
  const underLoad = async (agents: readonly ['a' | 'b', string][], atLeast: number, change: () => Promise<void>) => {
    let isChanging = true
    const changed = change().finally(() => {
      isChanging = false
    })
    for (let count = 0; isChanging || count < atLeast; count++) {
      const [name, agentId] = agents[count % agents.length] ?? assert.fail()
      await trigger(name, agentId)
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
    await changed
  }

  // The first process of the new code comes. The agent of its tool is made at a process that does not have the tool.
  await underLoad([['a', a]], 10, () => replace(0, './new.ts'))
  const b = await made(servers[1] ?? assert.fail(), `POST ${project}/agents`, agentWith('b'))
  const both = [
    ['a', a],
    ['b', b],
  ] as const satisfies ['a' | 'b', string][]
  await underLoad(both, 60, () => replace(1, './new.ts'))
  // The deploy is taken back: from then on nobody has the tool.
  await underLoad(both, 30, async () => {
    await replace(0, './old.ts')
    await replace(1, './old.ts')
  })
  const waiting = await trigger('b', b)
  await until(async () => (await runOf(waiting)).waiting_for === 'tool b', 'the run waits for its tool')
  const waits = await runOf(waiting)
  assert.deepEqual([waits.status, waits.is_wait, waits.started_at], ['queued', true, null])
  // Agents of the other tool are not kept waiting.
  const other = await trigger('a', a)
  await until(async () => (await runOf(other)).status === 'completed', 'the other agent works')
  await underLoad(both, 20, () => replace(1, './new.ts'))
  await until(allEnded, 'every run has ended')

  const ended = await Promise.all(accepted.map(runOf))
  const notDone = ended.filter((run) => run.status !== 'completed')
  assert.deepEqual(
    notDone.map((run) => [run.status, run.error_code, run.error_message, run.pause_reason]),
    [],
  )
  t.diagnostic(`${ended.length} runs completed`)
  const tasks = await any().call<{ items: Task[] }>(`GET ${project}/tasks?kind=escalation`)
  assert.deepEqual(tasks.body.items, [])

  // A process that only answers requests knows the tools of those that work.
  const api = await start(null, { MUSTER_ROLE: 'api' })
  servers = [api, ...servers]
  const answer = await api.call(`POST ${project}/agents`, { body: { ...agentWith('b'), name: 'made at the api' } })
  assert.equal(answer.status, 201, answer.text)
  const unknown = await api.call(`POST ${project}/agents`, { body: agentWith('c') })
  assert.equal(unknown.status, 400, unknown.text)
  for (const server of servers) await server.kill('SIGTERM')
})
