// Puts together everything that works on runs: the journal and its watchers, models, tools, and this process's worker.
import { join } from 'node:path'
import type { AgentChanged } from '../agents/agents.ts'
import { createCheckNames } from '../api/check-names.ts'
import type { RunServices } from '../api/http/run-services.ts'
import type { CodeRules } from '../app-modules/follow-code.ts'
import { type LoadedApp, requireOwnToolNames } from '../app-modules/load-app.ts'
import type { Pool } from '../db/pool.ts'
import type { Egress } from '../egress/egress.ts'
import type { Ask } from '../flows/definition/built-in-functions.ts'
import type { Decide } from '../flows/recommend/recommend-with-model.ts'
import { createJournal } from '../journal/append.ts'
import type { StoredEvent } from '../journal/entries.ts'
import { createHub } from '../journal/hub.ts'
import { HALT_CHANNEL, tellProcesses } from '../journal/wake.ts'
import { watchOthers } from '../journal/watch-others.ts'
import type { Log } from '../kernel/log.ts'
import { createLanguageModels } from '../models/language-models.ts'
import { createTestProvider } from '../models/test-provider.ts'
import { createObjectWriter } from '../objects/write-objects.ts'
import type { Metrics } from '../observe/metrics.ts'
import type { Tracing } from '../observe/tracing.ts'
import { agentChanged } from '../org/agent-changed.ts'
import { marksCrossed } from '../org/budget.ts'
import { createOpening } from '../org/opening.ts'
import { logRefusal } from '../org/refusals.ts'
import { seniorTools } from '../org/senior-tools.ts'
import { createWrite } from '../org/write.ts'
import type { PromptLibrary } from '../prompts/library.ts'
import { createHaltedWaker } from '../runs/halted-waker.ts'
import { createRunStarter } from '../runs/run-starter.ts'
import { type RunWorker, startRunWorker } from '../runs/worker.ts'
import type { Cipher } from '../secrets/cipher.ts'
import { createCheckpoints } from '../supervisor/checkpoints/checkpoints.ts'
import { createSupervise } from '../supervisor/supervise.ts'
import { createAskHuman } from '../tasks/ask-human.ts'
import { createConfinedPrograms } from '../tools/confine-programs.ts'
import { createMcp, type Mcp } from '../tools/mcp.ts'
import { createToolRegistry } from '../tools/registry.ts'
import { followAgent } from '../triggers/follow-agent.ts'
import { reactions } from '../triggers/reactions.ts'
import { createAsk, createDecide, type ModelParts } from './ask-model.ts'
import { createBuiltInTools } from './built-in-tools.ts'
import type { Config } from './config.ts'
import { logEvents } from './log-events.ts'
import { measureOrg } from './org-metrics.ts'
import { openPrompts } from './prompt-services.ts'
import { measureRuns } from './run-metrics.ts'
import { traceRuns } from './trace-runs.ts'

export interface StartedRuns {
  /** The services except those of flows and of the organisation, whose layers are above this one. */
  services: Omit<RunServices, 'flows' | 'org'>
  worker: RunWorker
  /** The log of the organisation, whose lines are also counted. */
  orgLog: Log
  ask: Ask
  decide: Decide
  /** The prompt library, for the supervisor and other users beside agents. */
  prompts: PromptLibrary
  stop(): Promise<void>
}

/** Triggers and the organisation are updated with every write of an agent. */
export const followAgents =
  (log: Log): AgentChanged =>
  async (tx, agent, change) => {
    await followAgent(tx, agent)
    await agentChanged(tx, log, agent, change)
  }

interface RunParts {
  config: Config
  app: LoadedApp | null
  /** Called before any run is claimed. If it rejects, nothing has begun. */
  beforeWork: (agentRules: CodeRules['agents']) => Promise<void>
  databaseUrl: string
  pool: Pool
  cipher: Cipher
  egress: Egress
  metrics: Metrics
  tracing: Tracing
  log: Log
}

/** The tools that agents may use: built in, of the app module, and of MCP servers. */
function openTools({ config, app, pool, cipher, egress, log }: RunParts) {
  const programs = createConfinedPrograms({
    path: config.commandPath,
    hidden: [config.dataDir],
    noteFile: join(config.dataDir, 'mcp.homes'),
    maySameUser: config.mcpSameUser,
  })
  const mcp = createMcp({ pool, cipher, egress, log, programs })
  const builtIns = createBuiltInTools({ pool, egress })
  if (app) requireOwnToolNames(app, builtIns)
  return { mcp, registry: createToolRegistry({ builtIns, appTools: app?.tools ?? [], mcp }) }
}

function leaveProjects(mcp: Mcp, projectIds: ReadonlySet<string>, log: Log): void {
  mcp
    .leave(projectIds)
    .catch((error: unknown) => log.warn({ err: error }, 'files of a deleted project’s programs could not be removed'))
}

export async function startRuns(parts: RunParts): Promise<StartedRuns> {
  const { config, app, pool, cipher, egress, log } = parts
  const { mcp, registry } = openTools(parts)
  const agentRules = { checkNames: createCheckNames(registry), onChanged: followAgents(log) }
  await parts.beforeWork(agentRules).catch((error: unknown) => mcp.stop().then(() => Promise.reject(error)))
  const hub = createHub()
  const measure = measureRuns(parts.metrics, pool, () => worker.active())
  const org = measureOrg(parts.metrics, pool)
  const orgLog = org.counting(log)
  const tell = logEvents(log)
  const traces = traceRuns({ tracing: parts.tracing, db: pool, log })
  const onWritten = (events: readonly StoredEvent[]): void => {
    hub.publish(events)
    measure(events)
    org.onEvents(events)
    tell(events)
    traces.onEvents(events)
  }
  const journal = createJournal({ db: pool, log, onWritten })
  const models = createLanguageModels({ db: pool, cipher, fetch: egress.fetch('trusted') })
  const writer = createObjectWriter({ pool, setsOff: reactions({ isAnnounced: config.role === 'api' }) })
  const prompts = await openPrompts({ config, pool, egress })
  const worker = await startRunWorker({
    url: parts.databaseUrl,
    pool,
    hub,
    log,
    slots: config.role === 'api' ? 0 : config.concurrency,
    tools: registry.ownNames,
    leaseMs: config.leaseMs,
    drainMs: config.drainMs,
    // No other process uses the embedded database, because this process has claimed the data folder.
    isAlone: config.databaseUrl === null,
    deps: {
      pool,
      journal,
      log,
      resolveModel: (choice) => models.resolve(choice),
      resolveTools: (projectId, names) => registry.resolve(projectId, names),
      resolvePrompt: prompts.resolve,
      askHuman: createAskHuman({ pool }),
      write: createWrite({ writer, log: orgLog }),
      opening: createOpening({ pool, journal, log: orgLog }),
      seniorTools: seniorTools.map((tool) => tool.name),
      onMarks: (tx, agentId, marks) => marksCrossed(tx, orgLog, agentId, marks),
      onRefused: (run, refused) => void logRefusal(pool, orgLog, run, refused),
      supervise: createSupervise({ checkpoints: createCheckpoints({ pool, log }) }),
      ...(app && app.middleware.length > 0 ? { middleware: app.middleware } : {}),
    },
  })
  worker.join(prompts.companion)
  worker.hearDeleted((projectIds) => leaveProjects(mcp, projectIds, log))
  const others = watchOthers({ db: pool, hub, log })
  const haltedWaker = createHaltedWaker({ db: pool, log, onReady: () => worker.onReady() })
  const services: StartedRuns['services'] = {
    journal,
    hub,
    soFar: (runId) => worker.texts.soFar(runId) ?? others.soFar(runId),
    soFarBelow: (runId) => [...others.soFarBelow(runId), ...worker.texts.soFarBelow(runId)],
    agentRules,
    onProvider: (name) => models.forget(name),
    testProvider: createTestProvider({ db: pool, cipher, fetch: egress.fetch('trusted') }),
    writer,
    starter: createRunStarter(pool, { isAnnounced: config.role === 'api' }),
    mcp,
    tools: registry,
    prompts: prompts.services,
    onReady: () => worker.onReady(),
    hearDeleted: worker.hearDeleted,
    onHalt: async (projectId, isHalted) => {
      await tellProcesses(pool, HALT_CHANNEL)
      if (!isHalted) haltedWaker.wake(projectId)
    },
  }
  const { isHalted, calls, outages } = worker
  const asking: ModelParts = { pool, resolveModel: (choice) => models.resolve(choice), isHalted, calls, outages }
  return {
    services,
    worker,
    orgLog,
    ask: createAsk(asking),
    decide: createDecide(asking),
    prompts: prompts.library,
    stop: async () => {
      await haltedWaker.stop()
      await worker.stop()
      await others.stop()
      await mcp.stop()
      await journal.drain()
      await traces.drain()
    },
  }
}
