// A worker with the pool and lease of `muster start` and room for fifty runs, with a model and a tool of the bench.
import type { LanguageModelV4 } from '@ai-sdk/provider'
import { createAgent } from '../../src/agents/agents.ts'
import { createPool, type Pool } from '../../src/db/pool.ts'
import { createJournal } from '../../src/journal/append.ts'
import type { StoredEvent } from '../../src/journal/entries.ts'
import { createHub, type Hub } from '../../src/journal/hub.ts'
import type { Journal } from '../../src/journal/journal.ts'
import { type Agent, agentInput } from '../../src/kernel/agent.ts'
import { newId } from '../../src/kernel/id.ts'
import { silentLog } from '../../src/kernel/log.ts'
import { systemActor } from '../../src/kernel/principal.ts'
import type { CallTool, Tool } from '../../src/kernel/tool.ts'
import { callModel } from '../../src/models/call-model.ts'
import type { Opening } from '../../src/runs/owned-run.ts'
import { createRunStarter } from '../../src/runs/run-starter.ts'
import { type RunWorker, startRunWorker } from '../../src/runs/worker.ts'
import { createToolRegistry } from '../../src/tools/registry.ts'
import { runTools } from '../../src/tools/run-tools.ts'
import { lookUp, TOOL } from './instant-model.ts'

/** The pool size of `muster start` (bin/start.ts). */
export const POOL_SIZE = 20
/** The slots that this many runs of one project need, because a fifth of all slots is kept for other projects. */
export const slotsFor = (underWay: number): number => Math.ceil(underWay * 1.25)
const SLOTS = slotsFor(50)
/** The defaults of MUSTER_LEASE and of a provider's idle_timeout_ms. */
const LEASE_MS = 10_000
const IDLE_TIMEOUT_MS = 120_000

export interface BenchWorker {
  pool: Pool
  agent: Agent
  /** Other workers under this process's name are built over these parts. */
  parts: { worker: RunWorker; journal: Journal; hub: Hub }
  /** Starts a run and returns its id. */
  start(): Promise<string>
  /** Resolves when the run has completed; any other end is an error. */
  finished(runId: string): Promise<void>
  stop(): Promise<void>
}

export async function startBenchWorker(
  url: string,
  models: (name: string) => LanguageModelV4 | undefined,
  {
    slots = SLOTS,
    modelName = 'instant',
    opening,
  }: { slots?: number; modelName?: string; opening?: (parts: { pool: Pool; journal: Journal }) => Opening } = {},
): Promise<BenchWorker> {
  const pool = createPool({ url, max: POOL_SIZE, log: silentLog })
  const projectId = newId()
  await pool.query('insert into projects (id, name) values ($1, $2)', [projectId, 'A project'])
  const agent = await createAgent(
    pool,
    projectId,
    agentInput.parse({ name: 'bench', model: { provider: 'bench', name: modelName }, tools: [TOOL.name] }),
    { actor: systemActor, checkNames: async () => null, onChanged: async () => {} },
  )
  const ends = watchEnds()
  const hub = createHub()
  const onWritten = (events: StoredEvent[]): void => {
    hub.publish(events)
    ends.note(events)
  }
  const journal = createJournal({ db: pool, log: silentLog, onWritten })
  const registry = createToolRegistry({ builtIns: runTools as Tool[], appTools: [lookUpTool], mcp: null })
  const starter = createRunStarter(pool)
  const worker = await startRunWorker({
    url,
    pool,
    hub,
    log: silentLog,
    slots,
    leaseMs: LEASE_MS,
    drainMs: 8_000,
    isAlone: false,
    deps: {
      pool,
      journal,
      log: silentLog,
      resolveModel: async ({ name }) => {
        const model = models(name)
        if (!model) return null
        return {
          contextTokens: 128_000,
          price: null,
          call: (request, { signal, onText }) =>
            callModel(model, request, { signal, onText, idleTimeoutMs: IDLE_TIMEOUT_MS, providerName: 'bench' }),
        }
      },
      resolveTools: (project, names) => registry.resolve(project, names),
      resolvePrompt: async () => {
        throw new Error('no agent here names a prompt')
      },
      write: async () => {
        throw new Error('nothing here writes')
      },
      askHuman: { ask: async () => {}, answers: async () => new Map() },
      ...(opening ? { opening: opening({ pool, journal }) } : {}),
    },
  })
  return {
    pool,
    agent,
    parts: { worker, journal, hub },
    start: async () => {
      const run = await starter.start(projectId, agent.id, { input: 'Look it up.', trigger: { type: 'manual' } })
      worker.onReady()
      return run.id
    },
    finished: ends.of,
    stop: async () => {
      await worker.stop()
      await pool.end()
    },
  }
}

const lookUpTool: CallTool = {
  kind: 'call',
  ...TOOL,
  parse: (args) => ({ ok: true, args }),
  effect: 'readonly',
  isPoller: false,
  timeoutMs: null,
  execute: async () => lookUp(),
}

/** A run may end before the caller waits for its end. */
function watchEnds(): { note(events: readonly StoredEvent[]): void; of(runId: string): Promise<void> } {
  const ends = new Map<string, PromiseWithResolvers<void>>()
  const endOf = (runId: string): PromiseWithResolvers<void> => {
    const end = ends.get(runId) ?? Promise.withResolvers<void>()
    ends.set(runId, end)
    return end
  }
  return {
    note: (events) => {
      const last = events.at(-1)
      if (last?.kind === 'run.completed') endOf(last.runId).resolve()
      if (last?.kind === 'run.failed' || last?.kind === 'run.paused') {
        endOf(last.runId).reject(new Error(`a run of the bench did not complete: ${last.data}`))
      }
    },
    of: async (runId) => {
      await endOf(runId).promise
      ends.delete(runId)
    },
  }
}
