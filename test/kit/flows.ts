// Flows that execute for real in this process, over a test database, with functions that a test wrote.
import { createFlowJournal } from '../../src/flows/execution/journal.ts'
import { type NewFlowRun, startFlow } from '../../src/flows/execution/start.ts'
import { type FlowWorker, startFlowWorker } from '../../src/flows/execution/worker.ts'
import { type BuiltInNode, builtInPatterns } from '../../src/flows/machine/built-in-patterns.ts'
import type { Patterns } from '../../src/flows/machine/pattern.ts'
import type { AppFunction } from '../../src/kernel/app.ts'
import type { FlowProgress, FlowRunStatus } from '../../src/kernel/flow-run.ts'
import { silentLog } from '../../src/kernel/log.ts'
import { systemActor } from '../../src/kernel/principal.ts'
import { cancelRuns } from '../../src/runs/cancel.ts'
import { atEnd } from './at-end.ts'
import { createTestRuns, type TestRuns, type TestRunsOptions } from './run-worker.ts'

export interface FlowRow {
  id: string
  status: FlowRunStatus
  output: unknown
  error: string | null
  progress: FlowProgress
  crashes: number
  owner: string | null
  ended_leaves: number
}

interface StartOptions extends Pick<NewFlowRun, 'parent'> {
  input?: unknown
  timeout?: number
  workers?: number
}

export interface TestFlows extends TestRuns {
  functions: Map<string, AppFunction>
  flowWorker: FlowWorker
  startFlow(root: BuiltInNode, options?: StartOptions): Promise<string>
  read(flowRunId: string): Promise<FlowRow>
  /** Waits until the flow run has ended. */
  ended(flowRunId: string): Promise<FlowRow>
  play(root: BuiltInNode, options?: StartOptions): Promise<FlowRow>
  flowKinds(flowRunId: string): Promise<string[]>
}

export async function createTestFlows(
  options: TestRunsOptions & {
    functions?: Record<string, AppFunction>
    patterns?: Patterns
    leafLimit?: number
    drainMs?: number
    patienceMs?: number
  } = {},
): Promise<TestFlows> {
  const { patterns = builtInPatterns } = options
  const runs = await createTestRuns(options)
  const { pool, worker } = runs
  const functions = new Map(Object.entries(options.functions ?? {}))
  const flowWorker = startFlowWorker({
    pool,
    runs: worker,
    log: options.log ?? silentLog,
    patienceMs: options.patienceMs ?? 8_000,
    ...(options.unwellAfterMs === undefined ? {} : { unwellAfterMs: options.unwellAfterMs }),
    deps: {
      pool,
      patterns,
      journal: createFlowJournal({ db: pool, log: silentLog }),
      log: silentLog,
      functions,
      leafLimit: options.leafLimit ?? 50,
      drainMs: async () => options.drainMs ?? 30_000,
      cancelRuns: (projectId, runIds) => cancelRuns(runs, projectId, runIds),
      onReady: () => worker.onReady(),
      bufferOf: async () => 100,
      isHalted: (projectId) => worker.isHalted(projectId),
    },
  })
  atEnd(() => flowWorker.stop())

  const read: TestFlows['read'] = async (id) => {
    const { rows } = await pool.query<FlowRow>(
      'select id, status, output, error, progress, crashes, owner, ended_leaves from flow_runs where id = $1',
      [id],
    )
    if (!rows[0]) throw new Error('there is no such flow run')
    return rows[0]
  }
  const ended: TestFlows['ended'] = async (id) => {
    for (;;) {
      const row = await read(id)
      if (row.status !== 'queued' && row.status !== 'running') return row
      await new Promise(setImmediate)
    }
  }
  const start: TestFlows['startFlow'] = async (root, { input = null, timeout = 600_000, workers, ...more } = {}) => {
    const run = { projectId: runs.projectId, flowId: null, root, input, timeoutMs: timeout, workers: workers ?? null }
    const id = await startFlow(pool, { ...run, ...more }, systemActor, patterns)
    flowWorker.poke()
    return id
  }
  return {
    ...runs,
    functions,
    flowWorker,
    startFlow: start,
    read,
    ended,
    play: async (root, given) => ended(await start(root, given)),
    flowKinds: async (id) => {
      const { rows } = await pool.query<{ kind: string }>(
        'select kind from flow_events where run_id = $1 order by seq',
        [id],
      )
      return rows.map((row) => row.kind)
    },
  }
}
