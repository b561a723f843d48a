// One piece of work by a random script, over the API: a project of its own with its agents, the answers of its model,
// the effects of its tools, and the people who resume it, retry it and answer its questions until it is completed.
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type { BuiltInNode } from '../../src/flows/machine/built-in-patterns.ts'
import type { FlowRun } from '../../src/kernel/flow-run.ts'
import type { Run } from '../../src/kernel/run.ts'
import type { Task } from '../../src/kernel/task.ts'
import type { Decision, EffectRecord, Execution } from './check-effects.ts'
import { type CallFault, type EffectScript, markOf, nextAnswer } from './effect-script.ts'
import type { ScriptedAnswer } from './scripted-model.ts'

export interface Answer {
  status: number
  body: unknown
}

/** The servers, as people and faults reach them. */
export interface EffectServers {
  /** Fails if no server answers; then nobody knows whether the request was carried out. */
  call(route: string, body?: object): Promise<Answer>
  /** The process that works on this dies, as soon as it may. */
  die(): Promise<void>
  /** A new number, larger than all before. */
  nextOrder(): number
  /** The provider of the agents' models. */
  provider: string
}

export interface EffectWork {
  readonly projectId: string
  /** The answer to a model call with this history, and the faults that befall it. */
  answer(leaf: number, results: Parameters<typeof nextAnswer>[2]): Promise<ScriptedAnswer>
  /** The fault that befalls this call of a tool or function; counts the call. */
  faultOfCall(): CallFault | null
  note(execution: Omit<Execution, 'order'>): void
  /** Starts the run, task or flow run. */
  begin(): Promise<void>
  /** Does everything that people do until the work is completed, or has ended for good. */
  seeThrough(): Promise<EffectRecord>
}

/** People give up after this many acts. */
const MAX_ACTS = 25
const MAX_MS = 120_000
const away = { fail: { message: 'The provider is overloaded.', isRetryable: true } }
const broken = { fail: { message: 'The provider is broken.', isRetryable: false } }
/** More failed tries than a model call has. */
const TRIES_OF_AN_OUTAGE = 6
const settings = {
  stuck_retry_limit: 1,
  poll_interval: 100,
  doom_loop_warn: 3,
  doom_loop_stop: 4,
  cancel_drain: 500,
}
const tools = ['notify', 'refund', 'look']
const OVER: ReadonlySet<string> = new Set(['completed', 'cancelled'])

export async function createEffectWork(
  servers: EffectServers,
  script: EffectScript,
  name: string,
  onCreated: (work: EffectWork) => void,
): Promise<EffectWork> {
  const { call, nextOrder } = servers
  const executions: Execution[] = []
  const decisions: Decision[] = []
  const choices = [...script.choices]
  let modelCalls = 0
  let toolCalls = 0
  let outageLeft = 0
  let loopLeft = 0
  let acts = 0
  /** The newest run, flow run or task. */
  let current = ''

  const { id: projectId } = (await asked('POST /api/projects', { name })) as { id: string }
  const base = `/api/projects/${projectId}`
  await asked(`PATCH ${base}/settings`, { ...settings, model_patience: script.patience })
  const agentIds: string[] = []
  for (const agent of ['first', 'second']) {
    const model = { provider: servers.provider, name }
    agentIds.push(((await asked(`POST ${base}/agents`, { name: agent, model, tools })) as { id: string }).id)
  }

  async function asked(route: string, body?: object): Promise<unknown> {
    const answer = await call(route, body)
    assert.ok(answer.status < 300, `${route}: ${answer.status} ${JSON.stringify(answer.body)}`)
    return answer.body
  }
  const items = async <Item>(path: string): Promise<Item[]> => {
    const { body, status } = await call(`GET ${base}${path}`)
    return status === 200 ? (body as { items: Item[] }).items : []
  }

  function choice(below: number): number {
    const next = choices.shift() ?? 0
    choices.push(next + 1)
    return next % below
  }

  async function answer(leaf: number, results: Parameters<typeof nextAnswer>[2]): Promise<ScriptedAnswer> {
    const number = ++modelCalls
    if (outageLeft > 0) {
      outageLeft--
      return away
    }
    if (loopLeft > 0) return looping(number)
    const plan = script.plans[leaf] ?? []
    switch (script.modelFaults.find(({ at }) => at === number)?.what) {
      case 'fail':
        return broken
      case 'away':
        return away
      case 'cut':
        return { text: 'I have ', ...away }
      case 'down':
        outageLeft = TRIES_OF_AN_OUTAGE - 1
        return away
      case 'loop':
        loopLeft = settings.doom_loop_stop
        return looping(number)
      case 'die':
        return { ...nextAnswer(plan, leaf, results), waitFor: meanwhile(servers.die()) }
      case 'cancel':
        return { ...nextAnswer(plan, leaf, results), waitFor: meanwhile(cancel()) }
      case 'pass':
        return { ...nextAnswer(plan, leaf, results), waitFor: meanwhile(passOn()) }
      case 'reopen': {
        const reopened = call(`PATCH ${base}/tasks/${current}`, { status: 'pending' })
        return { ...nextAnswer(plan, leaf, results), waitFor: meanwhile(reopened) }
      }
      default:
        return nextAnswer(plan, leaf, results)
    }
  }

  function looping(number: number): ScriptedAnswer {
    loopLeft--
    return { calls: [{ id: `loop ${number}`, name: 'look', args: { to: 'everything' } }] }
  }

  /** The answer of the model does not wait for the end of an act that waits for the model. */
  const meanwhile = (act: Promise<unknown>): Promise<unknown> => Promise.race([act.catch(() => {}), sleep(300)])

  async function cancel(): Promise<void> {
    if (script.place === 'leaf' || script.place === 'flow') {
      await call(`POST ${base}/flow-runs/${current}/cancel`, {})
      return
    }
    const open = (await items<Run>('/runs?limit=20')).filter(({ status }) => status === 'running')
    for (const { id } of open) await call(`POST ${base}/runs/${id}/cancel`, {})
  }

  async function passOn(): Promise<void> {
    const task = (await call(`GET ${base}/tasks/${current}`)).body as Task
    const other = agentIds.find((id) => id !== task.assigned_to)
    await call(`PATCH ${base}/tasks/${current}`, { assigned_to: other })
  }

  async function begin(): Promise<void> {
    const { place, plans } = script
    const input = `Do it. ${markOf(0)}`
    const [agent = ''] = agentIds
    if (place === 'run') {
      current = ((await asked(`POST ${base}/agents/${agent}/trigger`, { input })) as Run).id
    } else if (place === 'task') {
      current = ((await asked(`POST ${base}/tasks`, { title: input, assigned_to: agent })) as Task).id
    } else {
      const root = place === 'leaf' ? { ...leafOf(0), retry } : flowOf(plans.length)
      current = ((await asked(`POST ${base}/flow-runs`, { root })) as FlowRun).id
    }
  }

  async function seeThrough(): Promise<EffectRecord> {
    const until = performance.now() + MAX_MS
    let last: unknown
    while (acts < MAX_ACTS) {
      try {
        await answerQuestions()
        await tryNow()
        last = await actOn()
        if (last === true) return { script, executions, decisions, isCompleted: true }
        if (last === false) break
      } catch (error) {
        // A server died with the request. People look again.
        if (error instanceof assert.AssertionError) throw error
        last = error
      }
      if (performance.now() > until) assert.fail(`${name} has not ended: ${JSON.stringify({ script, last, acts })}`)
      await sleep(25)
    }
    return { script, executions, decisions, isCompleted: false }
  }

  /** Completes questions about outcomes by the ledger, and questions about fresh starts as the script chooses. */
  async function answerQuestions(): Promise<void> {
    for (const task of await items<Task>('/tasks?kind=escalation&status=pending&limit=50')) {
      const { kind } = task.metadata
      if (kind === 'outcome_unknown') await decide(task, outcomeOf(task))
      else if (kind === 'begin_anew') await decideAnew(task)
      else if (choice(2) === 0) await decide(task, 'Try once more.')
      else await call(`PATCH ${base}/tasks/${current}`, { status: 'pending' })
    }
  }

  /** Instead of an answer the task may go to the other agent. */
  async function decideAnew(question: Task): Promise<void> {
    const chosen = choice(4)
    if (chosen === 1 && script.place === 'task') {
      acts++
      await passOn()
    } else await decide(question, chosen === 0 ? 'stop' : 'again')
  }

  /** A person looks into the ledger. */
  function outcomeOf(task: Task): 'done' | 'not_done' {
    const key = /idempotency key (\S+)/.exec(task.description)?.[1]
    assert.ok(key, task.description)
    return executions.some((execution) => execution.key === key) ? 'done' : 'not_done'
  }

  async function decide({ id, metadata }: Task, result: string): Promise<void> {
    acts++
    const order = nextOrder()
    const decision: Decision | null =
      result === 'again'
        ? { order, is: 'again', keys: (metadata.calls as { key: string }[]).map(({ key }) => key) }
        : result === 'not_done'
          ? { order, is: 'not_done', callId: String(metadata.call_id) }
          : null
    // It counts from the request on; a request that is refused did not count.
    if (decision) decisions.push(decision)
    const { status } = await call(`PATCH ${base}/tasks/${id}`, { status: 'completed', result })
    if (decision && status >= 400 && status < 500) decisions.splice(decisions.indexOf(decision), 1)
  }

  async function tryNow(): Promise<void> {
    for (const { id } of await items<Run>('/runs?pause_reason=unavailable&limit=20')) {
      await call(`POST ${base}/runs/${id}/try-now`, {})
    }
  }

  /** Returns true if the work is completed, false if it has ended for good, and its status otherwise. */
  async function actOn(): Promise<unknown> {
    if (script.place === 'run') return actOnRun()
    return script.place === 'task' ? actOnTask() : actOnFlow()
  }

  async function actOnRun(): Promise<unknown> {
    const run = (await call(`GET ${base}/runs/${current}`)).body as Run
    if (run.resumed_as) current = run.resumed_as
    else if (run.status === 'completed') return true
    else if (run.completed_at !== null && run.pause_reason !== 'outcome_unknown') {
      await continued(await call(`POST ${base}/runs/${current}/resume`, {}))
    }
    return run
  }

  async function actOnTask(): Promise<unknown> {
    const task = (await call(`GET ${base}/tasks/${current}`)).body as Task
    if (OVER.has(task.status)) return task.status === 'completed'
    if (task.status === 'blocked' || task.status === 'failed') {
      acts++
      if (choice(2) === 0) await call(`PATCH ${base}/tasks/${current}`, { status: 'pending' })
      else await answerQuestions()
    }
    return task
  }

  async function actOnFlow(): Promise<unknown> {
    const flow = (await call(`GET ${base}/flow-runs/${current}`)).body as FlowRun
    if (flow.status === 'completed') return true
    if (flow.status === 'queued' || flow.status === 'running') return flow.status
    await continued(await call(`POST ${base}/flow-runs/${current}/resume`, {}))
    return flow
  }

  /** A person who was late finds the newest run of the chain. */
  async function continued({ status, body }: Answer): Promise<void> {
    acts++
    const { id, error } = body as { id?: string; error?: { details?: { run_id?: string } } }
    const newest = status < 300 ? id : error?.details?.run_id
    if (newest !== undefined) current = newest
  }

  const work: EffectWork = {
    projectId,
    answer,
    faultOfCall: () => {
      const number = ++toolCalls
      return script.callFaults.find(({ at }) => at === number)?.what ?? null
    },
    note: (execution) => void executions.push({ ...execution, order: nextOrder() }),
    begin,
    seeThrough,
  }
  onCreated(work)
  return work
}

const retry = { max_retries: 1, backoff: 0 }
const leafOf = (leaf: number) =>
  ({ type: 'task', id: `leaf-${leaf}`, agent: 'first', input: `Do it. ${markOf(leaf)}` }) as const

/** Leaves of agents, each with a function after it. */
function flowOf(leaves: number): BuiltInNode {
  return {
    type: 'sequential',
    retry,
    steps: Array.from({ length: leaves }, (_, leaf) => [
      leafOf(leaf),
      { type: 'task', id: `note-${leaf}`, function: 'note', args: { leaf } } as const,
    ]).flat(),
  }
}
