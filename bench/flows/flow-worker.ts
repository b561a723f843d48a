// A worker of flows as `muster start` wires it (bin/flow-services.ts), over the worker of runs of the other benches.
// The journal publishes the end of a flow, so the database is not polled for it.
import { startFlows } from '../../src/bin/flow-services.ts'
import { type BuiltInNode, builtInPatterns } from '../../src/flows/machine/built-in-patterns.ts'
import type { StoredEvent } from '../../src/journal/entries.ts'
import type { AppFunction } from '../../src/kernel/app.ts'
import { silentLog } from '../../src/kernel/log.ts'
import { systemActor } from '../../src/kernel/principal.ts'
import { type BenchWorker, slotsFor, startBenchWorker } from '../runs/bench-worker.ts'
import { createInstantModel } from '../runs/instant-model.ts'

export interface FlowBenchWorker {
  runs: BenchWorker
  /** Starts a flow and returns its id. */
  start(root: BuiltInNode, options?: { input?: unknown; workers?: number }): Promise<string>
  /** Waits until the flow has completed; any other end is an error. */
  finished(flowRunId: string): Promise<void>
}

/** The default of the setting flow_timeout. */
const TIMEOUT_MS = 3_600_000

export async function startFlowBenchWorker(
  url: string,
  { functions, concurrency }: { functions: Readonly<Record<string, AppFunction>>; concurrency: number },
): Promise<FlowBenchWorker> {
  const model = createInstantModel({ steps: 1, parts: 1 })
  const runs = await startBenchWorker(url, () => model, { slots: slotsFor(concurrency) })
  const { pool, agent, parts } = runs
  const ends = watchEnds()
  const publish = (events: readonly StoredEvent[]): void => {
    parts.hub.publish(events)
    ends.note(events)
  }
  const { services } = startFlows({
    drainMs: 8_000,
    patterns: builtInPatterns,
    role: 'all',
    concurrency: slotsFor(concurrency),
    pool,
    log: silentLog,
    worker: parts.worker,
    runs: { journal: parts.journal, hub: { ...parts.hub, publish } },
    functions: new Map(Object.entries(functions)),
  })
  return {
    runs,
    start: async (root, { input = null, workers } = {}) => {
      const run = { projectId: agent.project_id, flowId: null, root, input, timeoutMs: TIMEOUT_MS }
      return services.start({ ...run, workers: workers ?? null }, systemActor)
    },
    finished: ends.of,
  }
}

/** A flow may end before the caller waits for its end. */
function watchEnds(): { note(events: readonly StoredEvent[]): void; of(flowRunId: string): Promise<void> } {
  const ends = new Map<string, PromiseWithResolvers<void>>()
  const endOf = (flowRunId: string): PromiseWithResolvers<void> => {
    const end = ends.get(flowRunId) ?? Promise.withResolvers<void>()
    ends.set(flowRunId, end)
    return end
  }
  return {
    note: (events) => {
      const last = events.at(-1)
      if (!last?.kind.startsWith('flow.') || last.kind === 'flow.started') return
      if (last.kind === 'flow.completed') endOf(last.runId).resolve()
      else endOf(last.runId).reject(new Error(`a flow of the bench did not complete: ${last.kind} ${last.data}`))
    },
    of: async (flowRunId) => {
      await endOf(flowRunId).promise
      ends.delete(flowRunId)
    },
  }
}
