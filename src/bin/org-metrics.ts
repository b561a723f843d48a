// The figures of the organisation for Prometheus. Labels have few values: never an id or a name.
import type { Pool } from '../db/pool.ts'
import type { StoredEvent } from '../journal/entries.ts'
import type { Log, LogFields } from '../kernel/log.ts'
import type { Metrics } from '../observe/metrics.ts'
import {
  countAgents,
  countMarked,
  countOpenTasks,
  MOST_AGENTS,
  MOST_TASKS,
  oldestTaskSeconds,
  sumLimitedMonths,
} from '../org/figures.ts'

/** The sum over all agents of projects with a monthly limit is expensive, so it is not computed for every request. */
const MONTHS_EVERY_MS = 60_000

/** The status of an attempt that has ended, or the reason of its pause. */
const ATTEMPT_OUTCOMES: ReadonlySet<unknown> = new Set([
  'completed',
  'failed',
  'step_limit',
  'timeout',
  'context',
  'cancelled',
  'stopped',
  'budget',
])

export interface OrgMeasures {
  /** Counts the decisions among events that this process has committed. */
  onEvents(events: readonly StoredEvent[]): void
  counting(log: Log): Log
}

export function measureOrg(
  metrics: Metrics,
  pool: Pool,
  { now = () => performance.now() }: { now?: () => number } = {},
): OrgMeasures {
  watchTasks(metrics, pool)
  watchAgents(metrics, pool)
  watchMonths(metrics, pool, now)
  const decisions = metrics.counter({
    name: 'muster_task_decisions_total',
    help: 'Answers of agents to the questions before a task, by their effect.',
    labels: ['decision', 'outcome'],
  })
  const attempts = metrics.counter({
    name: 'muster_task_attempts_total',
    help: 'Attempts of agents at tasks, by outcome.',
    labels: ['outcome'],
  })
  const refusals = metrics.counter({
    name: 'muster_refusals_total',
    help: 'Refused acts of agents, because the agent had no right or because tasks went round endlessly.',
    labels: ['kind'],
  })

  function count({ operation, status, pause_reason: reason }: LogFields): void {
    if (operation === 'task.refused') refusals.inc({ kind: 'task' })
    else if (operation === 'budget.refused') refusals.inc({ kind: 'budget' })
    else if (operation === 'attempt.ended') {
      const outcome = status === 'paused' ? reason : status
      attempts.inc({ outcome: typeof outcome === 'string' && ATTEMPT_OUTCOMES.has(outcome) ? outcome : 'other' })
    }
  }

  return {
    onEvents: (events) => {
      for (const { kind, data } of events) {
        if (kind !== 'step.completed' || !data.includes('"decision":') || data.startsWith('{"run_id"')) continue
        const made = decisionIn(data)
        if (made) decisions.inc(made)
      }
    },
    counting: (log) => {
      const counted =
        (level: keyof Log): Log[keyof Log] =>
        (fields, message) => {
          count(fields)
          log[level](fields, message)
        }
      return { debug: counted('debug'), info: counted('info'), warn: counted('warn'), error: counted('error') }
    },
  }
}

function watchTasks(metrics: Metrics, pool: Pool): void {
  metrics.watch(
    {
      name: 'muster_task_queue_oldest_seconds',
      help: 'The age of the oldest task that its agent could start now; 0 if there is none.',
    },
    async () => [{ labels: {}, value: await oldestTaskSeconds(pool) }],
  )
  metrics.watch(
    {
      name: 'muster_tasks_open',
      help: `Open tasks over all projects, each count up to ${MOST_TASKS}.`,
      labels: ['kind', 'status'],
    },
    async () =>
      (await countOpenTasks(pool)).map(({ kind, status, count }) => ({ labels: { kind, status }, value: count })),
  )
}

function watchAgents(metrics: Metrics, pool: Pool): void {
  metrics.watch(
    { name: 'muster_agents', help: `Agents by status, each count up to ${MOST_AGENTS}.`, labels: ['status'] },
    async () => (await countAgents(pool)).map(({ status, count }) => ({ labels: { status }, value: count })),
  )
  metrics.watch(
    {
      name: 'muster_agents_near_budget',
      help: `Agents by the highest part of their allocation that they have used (90, 95 or 100 percent), each count up to ${MOST_TASKS}.`,
      labels: ['percent'],
    },
    async () =>
      (await countMarked(pool)).map(({ mark, count }) => ({ labels: { percent: String(mark) }, value: count })),
  )
}

function watchMonths(metrics: Metrics, pool: Pool, now: () => number): void {
  let read: { atMs: number; sums: ReturnType<typeof sumLimitedMonths> } | null = null
  const sums = (): ReturnType<typeof sumLimitedMonths> => {
    if (!read || now() - read.atMs >= MONTHS_EVERY_MS) {
      const fresh = { atMs: now(), sums: sumLimitedMonths(pool) }
      read = fresh
      fresh.sums.catch(() => {
        if (read === fresh) read = null
      })
    }
    return read.sums
  }
  metrics.watch(
    {
      name: 'muster_month_tokens',
      help: 'Tokens that projects with a monthly_token_limit have used this month, and the sum of their limits; read once a minute.',
      labels: ['kind'],
    },
    async () => {
      const { used, limit } = await sums()
      return [
        { labels: { kind: 'used' }, value: used },
        { labels: { kind: 'limit' }, value: limit },
      ]
    },
  )
  metrics.watch(
    { name: 'muster_month_projects_spent', help: 'Projects that have used up their month; read once a minute.' },
    async () => [{ labels: {}, value: (await sums()).spent }],
  )
}

interface DecisionLabels {
  decision: 'delegation' | 'plan'
  outcome: 'delegated' | 'split' | 'kept' | 'misfit'
}

/** Null for a step that is no decision, although its tools mention decisions, and for decisions of other kinds. */
function decisionIn(data: string): DecisionLabels | null {
  const { decision } = JSON.parse(data) as { decision?: { name?: string; next?: string; is_misfit?: boolean } } // our own event
  const kind = decision?.name === 'delegation_decision' ? 'delegation' : decision?.name === 'task_plan' ? 'plan' : null
  if (!decision || !kind) return null
  if (decision.is_misfit || decision.next === 'again') return { decision: kind, outcome: 'misfit' }
  if (decision.next !== 'done') return { decision: kind, outcome: 'kept' }
  return { decision: kind, outcome: kind === 'plan' ? 'split' : 'delegated' }
}
