// The services of the HTTP edge of runs, made of real parts: journal, hub, tools. With models, a worker executes runs.

import { createCheckNames } from '../../src/api/check-names.ts'
import type { RunServices } from '../../src/api/http/run-services.ts'
import { createBuiltInTools } from '../../src/bin/built-in-tools.ts'
import type { Config } from '../../src/bin/config.ts'
import { startEvals } from '../../src/bin/eval-services.ts'
import { startFlows } from '../../src/bin/flow-services.ts'
import { startOrg } from '../../src/bin/org-services.ts'
import { openPrompts } from '../../src/bin/prompt-services.ts'
import { followAgents } from '../../src/bin/run-services.ts'
import { createEgress } from '../../src/egress/egress.ts'
import { createBuiltInFunctions } from '../../src/flows/definition/built-in-functions.ts'
import { builtInPatterns } from '../../src/flows/machine/built-in-patterns.ts'
import type { Patterns } from '../../src/flows/machine/pattern.ts'
import type { Decide } from '../../src/flows/recommend/recommend-with-model.ts'
import { createJournal } from '../../src/journal/append.ts'
import type { StoredEvent } from '../../src/journal/entries.ts'
import { createHub } from '../../src/journal/hub.ts'
import { createLiveTexts, type LiveTexts } from '../../src/journal/live-text.ts'
import { HALT_CHANNEL, tellProcesses } from '../../src/journal/wake.ts'
import { watchOthers } from '../../src/journal/watch-others.ts'
import type { AppFunction } from '../../src/kernel/app.ts'
import { type Log, silentLog } from '../../src/kernel/log.ts'
import type { Middleware } from '../../src/kernel/middleware.ts'
import type { Model } from '../../src/kernel/model-call.ts'
import type { CallTool } from '../../src/kernel/tool.ts'
import { createTestProvider } from '../../src/models/test-provider.ts'
import { createObjectWriter } from '../../src/objects/write-objects.ts'
import { marksCrossed } from '../../src/org/budget.ts'
import { createOpening } from '../../src/org/opening.ts'
import { logRefusal } from '../../src/org/refusals.ts'
import { seniorTools } from '../../src/org/senior-tools.ts'
import { createWrite } from '../../src/org/write.ts'
import type { PromptLibrary } from '../../src/prompts/library.ts'
import { createHaltedWaker } from '../../src/runs/halted-waker.ts'
import { createRunStarter } from '../../src/runs/run-starter.ts'
import { type RunWorker, startRunWorker } from '../../src/runs/worker.ts'
import type { Cipher } from '../../src/secrets/cipher.ts'
import { createCheckpoints } from '../../src/supervisor/checkpoints/checkpoints.ts'
import { createSupervise } from '../../src/supervisor/supervise.ts'
import { createAskHuman } from '../../src/tasks/ask-human.ts'
import { createConfinedPrograms } from '../../src/tools/confine-programs.ts'
import { createMcp } from '../../src/tools/mcp.ts'
import { createToolRegistry } from '../../src/tools/registry.ts'
import { reactions } from '../../src/triggers/reactions.ts'
import { atEnd } from './at-end.ts'
import type { TestDatabase } from './database.ts'

export interface TestServicesOptions {
  /** The models of the provider `test`, by name. Without models runs stay queued. */
  models?: Map<string, Model> | undefined
  tools?: readonly CallTool[] | undefined
  /** Functions for leaves of flows. With models, flows are executed; without models flows stay queued. */
  functions?: Record<string, AppFunction> | undefined
  /** The patterns of flows; the built-in patterns by default. */
  patterns?: Patterns | undefined
  middleware?: readonly Middleware[] | undefined
  /** Asks a project's default model for a decision; without this function no model is asked. */
  decide?: Decide | undefined
  /** The value of SYSTEM_VARIANT. */
  systemVariant?: string | null | undefined
  /** The values of MUSTER_PROMPTS_URL and MUSTER_PROMPTS_KEY. */
  library?: Config['prompts'] | undefined
  firstBackoffMs?: number | undefined
  leaseMs?: number | undefined
  waits?: Pick<RunServices, 'waitMs' | 'cancelWaitMs' | 'heartbeatMs' | 'recheckMs'> | undefined
  log?: Log | undefined
  /** Called with the events of runs when they are committed. */
  onEvents?: ((events: readonly StoredEvent[]) => void) | undefined
}

export interface TestServices extends RunServices {
  texts: LiveTexts
  /** The prompt library as runs of this process read it. */
  library: PromptLibrary
  /** The number of notices that runs are ready. */
  readyCount(): number
  halts: [projectId: string, isHalted: boolean][]
}

export async function createTestServices(
  { pool, url }: TestDatabase,
  cipher: Cipher,
  {
    models,
    tools = [],
    functions = {},
    patterns,
    middleware,
    decide,
    systemVariant = null,
    library = null,
    firstBackoffMs,
    leaseMs = 10_000,
    waits = {},
    log = silentLog,
    onEvents,
  }: TestServicesOptions,
): Promise<TestServices> {
  const hub = createHub()
  const onWritten = (events: readonly StoredEvent[]): void => {
    hub.publish(events)
    onEvents?.(events)
  }
  const journal = createJournal({ db: pool, log, onWritten })
  const egress = createEgress({ allow: [] })
  const programs = createConfinedPrograms({ path: '/usr/bin:/bin', hidden: [], maySameUser: true })
  const mcp = createMcp({ pool, cipher, egress, log, programs, pingTimeoutMs: 300 })
  const writer = createObjectWriter({ pool, setsOff: reactions({ isAnnounced: false }) })
  const registry = createToolRegistry({
    builtIns: createBuiltInTools({ pool, egress }),
    appTools: tools,
    mcp,
  })
  const prompts = await openPrompts({ config: { systemVariant, prompts: library }, pool, egress })
  const worker = models ? await startWorker(models) : null
  worker?.join(prompts.companion)
  worker?.hearDeleted((projectIds) => void mcp.leave(projectIds))
  const texts = worker?.texts ?? createLiveTexts({ db: pool, hub, hasOthers: () => false, log })
  const others = watchOthers({ db: pool, hub, log })
  const flows = startFlows({
    role: worker ? 'all' : 'api',
    patterns: patterns ?? builtInPatterns,
    concurrency: 50,
    drainMs: 8_000,
    pool,
    worker: worker ?? {
      hasOthers: () => false,
      ownerId: () => '',
      join: () => {},
      hearDeleted: () => {},
      onReady: () => {},
      isHalted: () => false,
      serveFlows: () => {},
    },
    runs: { journal, hub },
    functions: new Map([
      ...createBuiltInFunctions({ ask: async (_, prompt) => `Asked: ${prompt}` }),
      ...Object.entries(functions),
    ]),
    ...(decide ? { decide } : {}),
    log,
    // A test of alerts starts each check itself, because the time of an automatic check depends on the machine.
    checkAlertsEveryMs: null,
  })
  const org = worker
    ? startOrg({ role: 'all', pool, worker, log })
    : { services: { isAnnounced: false, arrived: () => {}, poke: () => {}, sweep: () => {} }, stop: async () => {} }
  const evals = worker ? startEvals({ role: 'all', pool, journal, worker, log }) : null
  let readyCount = 0
  const halts: TestServices['halts'] = []
  const onReady = (): void => {
    readyCount++
    worker?.onReady()
  }
  const haltedWaker = createHaltedWaker({ db: pool, log, onReady })
  atEnd(async () => {
    await haltedWaker.stop()
    await flows.stop()
    await org.stop()
    await evals?.stop()
    await worker?.stop()
    await others.stop()
    await mcp.stop()
    await journal.drain()
    await egress.close()
  })
  return {
    journal,
    hub,
    soFar: (runId) => texts.soFar(runId),
    writer,
    starter: createRunStarter(pool),
    agentRules: { checkNames: createCheckNames(registry), onChanged: followAgents(log) },
    testProvider: createTestProvider({ db: pool, cipher, fetch: egress.fetch('trusted'), timeoutMs: 2_000 }),
    mcp,
    tools: registry,
    prompts: prompts.services,
    flows: flows.services,
    org: org.services,
    onReady,
    ...(worker ? { hearDeleted: worker.hearDeleted } : {}),
    onHalt: async (projectId, isHalted) => {
      halts.push([projectId, isHalted])
      await tellProcesses(pool, HALT_CHANNEL)
      if (!isHalted) haltedWaker.wake(projectId)
    },
    ...waits,
    texts,
    library: prompts.library,
    readyCount: () => readyCount,
    halts,
  }

  async function startWorker(known: Map<string, Model>): Promise<RunWorker> {
    await pool.query(`insert into providers (name, kind, source) values ('test', 'offline', 'api')`)
    return startRunWorker({
      url,
      pool,
      hub,
      log,
      slots: 20,
      leaseMs,
      drainMs: 8_000,
      isAlone: false,
      deps: {
        pool,
        journal,
        log,
        resolveModel: async (choice) => known.get(choice.name) ?? null,
        resolveTools: (projectId, names) => registry.resolve(projectId, names),
        resolvePrompt: prompts.resolve,
        ...(firstBackoffMs === undefined ? {} : { firstBackoffMs }),
        askHuman: createAskHuman({ pool }),
        write: createWrite({ writer, log }),
        opening: createOpening({ pool, journal, log }),
        seniorTools: seniorTools.map((tool) => tool.name),
        onMarks: (tx, agentId, marks) => marksCrossed(tx, log, agentId, marks),
        onRefused: (run, refused) => void logRefusal(pool, log, run, refused),
        supervise: createSupervise({ checkpoints: createCheckpoints({ pool, log }) }),
        ...(middleware ? { middleware } : {}),
      },
    })
  }
}
