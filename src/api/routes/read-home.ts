// Gathers the parts of Home. Each statement has a time of its own: a part with one that takes longer is left out, and the
// answer says so.
import { countAgentsOfEach, findShortAgents, readShortAgents } from '../../agents/agents-of-home.ts'
import { readTwoDays } from '../../agents/usage-of-home.ts'
import { inTime } from '../../db/in-time.ts'
import { MOST_OF_EACH, type NewestOfEach, type Placed } from '../../db/newest-of-each.ts'
import type { Db, Pool } from '../../db/pool.ts'
import { inTransaction } from '../../db/transaction.ts'
import { findOpenAlerts, readOpenAlerts } from '../../flows/alerts/open-alerts.ts'
import { findFailedFlowRuns, findRunningFlowRuns, readFlowRunsOfHome } from '../../flows/history/flow-runs-of-home.ts'
import {
  findProviderWaits,
  findRunningRuns,
  findStoppedRuns,
  readRunsOfHome,
} from '../../flows/history/runs-of-home.ts'
import type { Home, HomeCount, HomePart, HomeProject, OneRunItem, RunItem, WaitItem } from '../../kernel/home.ts'
import type { Project } from '../../kernel/project.ts'
import { findWaitingTasks, readWaitingTasks } from '../../tasks/waiting-tasks.ts'

const MOST_ITEMS = 50
const DAY_MS = 24 * 60 * 60_000

export interface HomeQuery {
  /** Newest first. */
  projects: readonly Project[]
  hasMore: boolean
  since: Date
  now: Date
  /** The time for each statement. */
  timeMs: number
}

export async function readHome(pool: Pool, { projects, hasMore, since, now, timeMs }: HomeQuery): Promise<Home> {
  const ids = projects.map(({ id }) => id)
  const days = { today: dayOf(now.getTime()), yesterday: dayOf(now.getTime() - DAY_MS) }
  return inTransaction(pool, async (tx) => {
    const incomplete: HomePart[] = []
    const read = async <Result>(part: HomePart, work: () => Promise<Result>): Promise<Result | null> => {
      const result = await inTime(tx, timeMs, work)
      if (result === null) incomplete.push(part)
      return result
    }
    const waits = await read('waits', () => readWaits(tx, ids))
    const runs = await read('runs', () => readRuns(tx, ids))
    const providerWaits = await read('provider_waits', () => readProviderWaits(tx, ids))
    const fails = await read('fails', () => readFails(tx, ids, since))
    const agents = await read('agents', () => countAgentsOfEach(tx, ids))
    const usageOf = await read('usage', () => readTwoDays(tx, ids, days))
    const toProject = ({ id, halted_at }: Project): HomeProject => ({
      project_id: id,
      halted_at,
      agents: agents?.get(id) ?? null,
      waits: countOf(waits, id),
      runs: countOf(runs, id),
      fails: countOf(fails, id),
      usage: usageOf?.(id) ?? null,
    })
    return {
      since: since.toISOString(),
      waits: toList(waits),
      runs: toList(runs),
      provider_waits: toList(providerWaits),
      fails: toList(fails),
      projects: { items: projects.map(toProject), has_more: hasMore },
      incomplete,
    }
  })
}

const dayOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10)

interface List<Item> {
  items: Item[]
  counts: ReadonlyMap<string, HomeCount>
}

async function readWaits(db: Db, projects: readonly string[]): Promise<List<WaitItem>> {
  const tasks = await findWaitingTasks(db, projects, MOST_ITEMS)
  const alerts = await findOpenAlerts(db, projects, MOST_ITEMS)
  const agents = await findShortAgents(db, projects, MOST_ITEMS)
  const shown = newestOf({ tasks, alerts, agents })
  const taskOf = await readWaitingTasks(db, idsOf(shown, 'tasks'))
  const alertOf = await readOpenAlerts(db, idsOf(shown, 'alerts'))
  const agentOf = await readShortAgents(db, idsOf(shown, 'agents'))
  const items = shown.flatMap(({ id, project_id, at: date }): WaitItem[] => {
    const placed = { project_id, at: date.toISOString() }
    const [task, alert, agent] = [taskOf.get(id), alertOf.get(id), agentOf.get(id)]
    if (task) return [{ kind: 'task', ...placed, task }]
    if (alert) return [{ kind: 'alert', ...placed, alert }]
    return agent ? [{ kind: 'agent', ...placed, agent }] : []
  })
  return { items, counts: countEach([tasks, alerts, agents]) }
}

async function readRuns(db: Db, projects: readonly string[]): Promise<List<RunItem>> {
  const flowRuns = await findRunningFlowRuns(db, projects, MOST_ITEMS)
  return toRunList(db, { flowRuns, runs: await findRunningRuns(db, projects, MOST_ITEMS) })
}

async function readProviderWaits(db: Db, projects: readonly string[]): Promise<List<OneRunItem>> {
  const found = await findProviderWaits(db, projects, MOST_ITEMS)
  const runOf = await readRunsOfHome(
    db,
    found.newest.map(({ id }) => id),
  )
  const items = found.newest.flatMap(({ id, project_id, at: date }): OneRunItem[] => {
    const run = runOf.get(id)
    return run ? [{ kind: 'run', project_id, at: date.toISOString(), run }] : []
  })
  return { items, counts: countEach([found]) }
}

async function readFails(db: Db, projects: readonly string[], since: Date): Promise<List<RunItem>> {
  const flowRuns = await findFailedFlowRuns(db, projects, MOST_ITEMS, since)
  return toRunList(db, { flowRuns, runs: await findStoppedRuns(db, projects, MOST_ITEMS, since) })
}

async function toRunList(db: Db, found: Record<'flowRuns' | 'runs', NewestOfEach>): Promise<List<RunItem>> {
  const shown = newestOf(found)
  const flowRunOf = await readFlowRunsOfHome(db, idsOf(shown, 'flowRuns'))
  const runOf = await readRunsOfHome(db, idsOf(shown, 'runs'))
  const items = shown.flatMap(({ id, project_id, at: date }): RunItem[] => {
    const placed = { project_id, at: date.toISOString() }
    const [run, flow_run] = [runOf.get(id), flowRunOf.get(id)]
    if (run) return [{ kind: 'run', ...placed, run }]
    return flow_run ? [{ kind: 'flow_run', ...placed, flow_run }] : []
  })
  return { items, counts: countEach([found.flowRuns, found.runs]) }
}

type Shown<Of extends string> = Placed & { of: Of }

/** The newest of several kinds together. */
function newestOf<Of extends string>(found: Readonly<Record<Of, NewestOfEach>>): Shown<Of>[] {
  const all = (Object.keys(found) as Of[]).flatMap((of) => found[of].newest.map((placed) => ({ ...placed, of }))) // Object.keys returns string[]
  return all.sort((a, b) => b.at.getTime() - a.at.getTime() || (a.id < b.id ? 1 : -1)).slice(0, MOST_ITEMS)
}

const idsOf = <Of extends string>(shown: readonly Shown<Of>[], wanted: Of): string[] =>
  shown.filter(({ of }) => of === wanted).map(({ id }) => id)

function countEach(found: readonly NewestOfEach[]): Map<string, HomeCount> {
  const counts = new Map<string, HomeCount>()
  for (const [projectId, amount] of found.flatMap((each) => [...each.counts])) {
    const before = counts.get(projectId) ?? NONE
    counts.set(projectId, {
      count: before.count + Math.min(amount, MOST_OF_EACH),
      has_more: before.has_more || amount > MOST_OF_EACH,
    })
  }
  return counts
}

const NONE: HomeCount = { count: 0, has_more: false }

const countOf = (list: List<unknown> | null, projectId: string): HomeCount | null =>
  list && (list.counts.get(projectId) ?? NONE)

function toList<Item>(list: List<Item> | null): { items: Item[] } & HomeCount {
  if (!list) return { items: [], count: 0, has_more: true }
  const counts = [...list.counts.values()]
  return {
    items: list.items,
    count: counts.reduce((total, { count }) => total + count, 0),
    has_more: counts.some(({ has_more }) => has_more),
  }
}
