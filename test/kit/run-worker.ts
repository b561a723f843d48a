// A worker in this process over a test database, with models and tools that a test wrote: runs execute for real, on a
// real journal, and tests assert the rows in the database.
import type { z } from 'zod'
import { createAgent } from '../../src/agents/agents.ts'
import { inTransaction } from '../../src/db/transaction.ts'
import { updateSettings } from '../../src/identity/settings.ts'
import { createJournal } from '../../src/journal/append.ts'
import { followRun } from '../../src/journal/follow.ts'
import { createHub, type Hub } from '../../src/journal/hub.ts'
import type { Journal } from '../../src/journal/journal.ts'
import { watchOthers } from '../../src/journal/watch-others.ts'
import { type Agent, agentInput } from '../../src/kernel/agent.ts'
import { promptMissing } from '../../src/kernel/errors.ts'
import { type Log, silentLog } from '../../src/kernel/log.ts'
import type { Middleware } from '../../src/kernel/middleware.ts'
import type { Model } from '../../src/kernel/model-call.ts'
import { systemActor } from '../../src/kernel/principal.ts'
import type { SettingsPatch } from '../../src/kernel/project.ts'
import type { Run, Step } from '../../src/kernel/run.ts'
import type { CallTool, Tool } from '../../src/kernel/tool.ts'
import { createGraphReaders } from '../../src/objects/object-tools.ts'
import { createObjectWriter, type ObjectWriter } from '../../src/objects/write-objects.ts'
import type { AskHuman, RunDeps } from '../../src/runs/owned-run.ts'
import { getRun } from '../../src/runs/read-runs.ts'
import { startRun } from '../../src/runs/start.ts'
import { listSteps } from '../../src/runs/steps.ts'
import { type RunWorker, startRunWorker } from '../../src/runs/worker.ts'
import { createWriteTools, writeTools } from '../../src/tasks/write-tools.ts'
import { createToolRegistry } from '../../src/tools/registry.ts'
import { runTools } from '../../src/tools/run-tools.ts'
import { followAgent } from '../../src/triggers/follow-agent.ts'
import { reactions } from '../../src/triggers/reactions.ts'
import { atEnd } from './at-end.ts'
import { createTestDatabase, type TestDatabase } from './database.ts'
import { insertProject } from './runs.ts'

interface StartGiven {
  input?: unknown
  timeout?: number
  max_steps?: number
}

export interface TestRuns extends TestDatabase {
  projectId: string
  journal: Journal
  hub: Hub
  worker: RunWorker
  writer: ObjectWriter
  /** A model by its name; `script` is the default of agents made here. */
  models: Map<string, Model>
  createAgent(input?: Partial<z.input<typeof agentInput>>): Promise<Agent>
  set(patch: SettingsPatch): Promise<void>
  start(agent: Agent, options?: StartGiven): Promise<Run>
  /** Waits until the run has ended or waits for a person. */
  finished(runId: string): Promise<Run>
  run(agent: Agent, options?: StartGiven): Promise<Run>
  steps(runId: string): Promise<Step[]>
  kinds(runId: string): Promise<string[]>
  get(runId: string): Promise<Run>
}

export interface TestRunsOptions {
  tools?: readonly CallTool[]
  slots?: number
  leaseMs?: number
  unwellAfterMs?: number
  log?: Log
  askHuman?: AskHuman
  resolvePrompt?: RunDeps['resolvePrompt']
  middleware?: readonly Middleware[]
  /** True: this process takes only runs whose tools it has, as a server does. */
  isRouted?: boolean
  /** Another process over the same database. */
  database?: TestDatabase & { projectId: string; models: Map<string, Model> }
}

const noPrompts: RunDeps['resolvePrompt'] = async (_, promptId) => {
  throw promptMissing(promptId, 'blue', { isDuringRun: true })
}
const nobodyAnswers: AskHuman = { ask: async () => {}, answers: async () => new Map() }

export async function createTestRuns(options: TestRunsOptions = {}): Promise<TestRuns> {
  const database = options.database ?? (await createTestDatabase())
  const { pool, url } = database
  const projectId = options.database?.projectId ?? (await insertProject(pool))
  const models = options.database?.models ?? new Map<string, Model>()
  const log = options.log ?? silentLog
  const hub = createHub()
  const journal = createJournal({ db: pool, log, onWritten: (events) => hub.publish(events) })
  const registry = createToolRegistry({
    builtIns: [...runTools, ...writeTools, ...createGraphReaders(pool)] as Tool[],
    appTools: options.tools ?? [],
    mcp: null,
  })
  const writer = createObjectWriter({ pool, setsOff: reactions({ isAnnounced: false }) })
  const worker = await startRunWorker({
    url,
    pool,
    hub,
    log,
    slots: options.slots ?? 20,
    ...(options.isRouted ? { tools: registry.ownNames } : {}),
    leaseMs: options.leaseMs ?? 10_000,
    drainMs: 8_000,
    isAlone: false,
    ...(options.unwellAfterMs === undefined ? {} : { unwellAfterMs: options.unwellAfterMs }),
    deps: {
      pool,
      journal,
      log,
      resolveModel: async (choice) => models.get(choice.name) ?? null,
      resolveTools: (project, names) => registry.resolve(project, names),
      resolvePrompt: options.resolvePrompt ?? noPrompts,
      firstBackoffMs: 1,
      askHuman: options.askHuman ?? nobodyAnswers,
      write: createWriteTools({ writer }),
      ...(options.middleware ? { middleware: options.middleware } : {}),
    },
  })
  const others = watchOthers({ db: pool, hub, log })
  atEnd(async () => {
    await worker.stop()
    await others.stop()
  })

  const get = (runId: string): Promise<Run> => getRun(pool, projectId, runId)
  const start: TestRuns['start'] = async (agent, { input = 'Do it.', timeout, max_steps } = {}) => {
    const run = await startRun(pool, projectId, agent.id, {
      input,
      trigger: { type: 'manual' },
      timeoutMs: timeout,
      maxSteps: max_steps,
    })
    worker.onReady()
    return run
  }
  const finished: TestRuns['finished'] = async (runId) => {
    const stop = new AbortController()
    const source = { db: pool, hub, soFar: () => null }
    for await (const followed of followRun(source, runId, { after: 0, signal: stop.signal })) {
      if (followed.type !== 'event' || !/^run\.(completed|failed|cancelled|paused)$/.test(followed.event.kind)) continue
      const run = await get(runId)
      if (run.completed_at !== null || run.status === 'paused') return run
    }
    throw new Error('the stream ended before the run')
  }
  let named = 0
  return {
    ...database,
    projectId,
    journal,
    hub,
    worker,
    writer,
    models,
    createAgent: (input = {}) =>
      inTransaction(pool, (tx) =>
        createAgent(
          tx,
          projectId,
          agentInput.parse({ name: `agent ${++named}`, model: { provider: 'test', name: 'script' }, ...input }),
          { actor: systemActor, checkNames: async () => null, onChanged: followAgent },
        ),
      ),
    set: async (patch) => {
      await updateSettings(pool, projectId, patch, systemActor)
    },
    start,
    finished,
    run: async (agent, given = {}) => finished((await start(agent, given)).id),
    steps: async (runId) => (await listSteps(pool, runId, { limit: 200 })).items,
    kinds: async (runId) => {
      const { rows } = await pool.query<{ kind: string }>(
        'select kind from run_events where run_id = $1 order by seq',
        [runId],
      )
      return rows.map((row) => row.kind)
    },
    get,
  }
}

/** A tool that a test watches. */
export function testTool(
  name: string,
  execute: CallTool['execute'],
  fields: Partial<Pick<CallTool, 'effect' | 'isPoller' | 'timeoutMs'>> = {},
): CallTool {
  return {
    kind: 'call',
    name,
    description: `A tool for tests called ${name}.`,
    inputSchema: { type: 'object', properties: {}, additionalProperties: true },
    parse: (args) => ({ ok: true, args }),
    effect: 'readonly',
    isPoller: false,
    timeoutMs: null,
    ...fields,
    execute,
  }
}
