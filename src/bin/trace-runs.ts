// Makes spans of runs from the journal: a committed event ends a step of a run, and has the time at which the step
// began. The process that executes a run sends its spans; the code of runs does not know of traces.
//
//   a run                 invoke_agent <name>    the whole run; of a supervisor's, up to its first question to people
//   a supervisor's nodes  node <name>            below the run; each with its model call
//   specialists, sub-runs invoke_agent <name>    below the run that started them
//   model calls           chat <model>           below the run, or below the node that asked
//   tool calls            execute_tool <name>    below the run
//   after an answer       continue <name>        below the run: the supervisor's work after a person's answer
import { loadAgents } from '../agents/agents.ts'
import type { Db } from '../db/pool.ts'
import { loadSettings } from '../identity/settings.ts'
import type { StoredEvent } from '../journal/entries.ts'
import { readAnswers, readTracedRuns, type TracedRun } from '../journal/traced-runs.ts'
import type { Log } from '../kernel/log.ts'
import { putNewest } from '../kernel/put-newest.ts'
import type { RunEvent } from '../kernel/run-event.ts'
import { noTracing, type PastSpan, type Tracing } from '../observe/tracing.ts'
import { endSpans, type KnownRun, stepSpans, toolSpan } from './run-spans.ts'

export interface RunTraces {
  /** Called with the events of runs when they are committed. Never throws. */
  onEvents(events: readonly StoredEvent[]): void
  /** Resolves when the spans of all events so far are sent. */
  drain(): Promise<void>
}

const TOLD: ReadonlySet<string> = new Set<RunEvent['kind']>([
  'step.completed',
  'tool.completed',
  'run.completed',
  'run.failed',
  'run.cancelled',
  'run.paused',
])
const MOST_WAITING = 20_000
const AT_ONCE = 500
const MOST_KNOWN = 5_000

export function traceRuns({ tracing, db, log }: { tracing: Tracing; db: Db; log: Log }): RunTraces {
  if (tracing === noTracing) return { onEvents: () => {}, drain: async () => {} }
  const known = new Map<string, KnownRun>()
  let waiting: StoredEvent[] = []
  let telling: Promise<void> | null = null
  let isFull = false

  return {
    onEvents(events) {
      for (const event of events) {
        // An event of a sub-run is in the sub-run's own journal too.
        if (!TOLD.has(event.kind) || event.data.startsWith('{"run_id"')) continue
        if (waiting.length >= MOST_WAITING) {
          if (!isFull) log.warn({}, 'There are more events of runs than can be traced; some are left out.')
          isFull = true
          break
        }
        waiting.push(event)
      }
      if (waiting.length > 0) telling ??= tellAll()
    },
    drain: async () => {
      while (telling) await telling
    },
  }

  async function tellAll(): Promise<void> {
    // Events that are committed at the same moment are traced together.
    await new Promise(setImmediate)
    while (waiting.length > 0) {
      const batch = waiting.slice(0, AT_ONCE)
      waiting = waiting.slice(AT_ONCE)
      try {
        await tell(batch)
      } catch (error) {
        log.warn({ err: error, events: batch.length }, 'some events of runs could not be traced')
      }
    }
    isFull = false
    telling = null
  }

  async function tell(batch: readonly StoredEvent[]): Promise<void> {
    await learn(batch.map(({ runId }) => runId))
    const ends = batch.filter(({ kind }) => kind.startsWith('run.'))
    const ended = ends.length === 0 ? [] : await readTracedRuns(db, [...new Set(ends.map(({ runId }) => runId))])
    const endOf = new Map(ended.map((run) => [run.id, run]))
    for (const event of batch) {
      const about = known.get(event.runId)
      if (!about) continue
      for (const span of await spansOf(about, event, endOf.get(event.runId))) tracing.record(span)
    }
  }

  async function spansOf(about: KnownRun, event: StoredEvent, now: TracedRun | undefined): Promise<PastSpan[]> {
    if (event.kind === 'step.completed') return stepSpans(about, event.seq, JSON.parse(event.data))
    if (event.kind === 'tool.completed') return [toolSpan(about, event.seq, JSON.parse(event.data))]
    const isSupervisor = about.run.node === 'supervisor'
    const answers = isSupervisor ? await readAnswers(db, about.run.id, event.seq) : null
    return endSpans(about, event, { now, answers })
  }

  async function learn(runIds: readonly string[]): Promise<void> {
    const unknown = [...new Set(runIds)].filter((id) => !known.has(id))
    if (unknown.length === 0) return
    const runs = await readTracedRuns(db, unknown)
    const agents = await loadAgents(db, [...new Set(runs.flatMap(({ agent_id: id }) => id ?? []))])
    const settings = await loadSettings(db, [...new Set(runs.map(({ project_id: id }) => id))])
    for (const run of runs) {
      const agent = agents.get(run.agent_id ?? '')
      const fallback = settings.get(run.project_id)?.default_model ?? null
      const modelOf = (node: string | undefined) =>
        (run.models ? run.models[node ?? 'model'] : agent?.model) ?? fallback
      putNewest(known, run.id, { run, name: run.node ?? agent?.name ?? 'agent', modelOf }, MOST_KNOWN)
    }
  }
}
