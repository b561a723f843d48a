import { loadAgents } from '../agents/agents.ts'
import type { Db } from '../db/pool.ts'
import { loadSettings } from '../identity/settings.ts'
import type { ClaimedRun } from '../journal/claim.ts'
import { putNewest } from '../kernel/put-newest.ts'
import type { Definition } from './owned-run.ts'
import { agentOfPart } from './part-agent.ts'

const MOST_KEPT = 5_000

interface Kept<Value> {
  changed: number
  value: Value
}

/**
 * The definitions that runs follow. A claim tells when agent and project were last changed: definitions read since then
 * are used again, and a change holds from the next claim on.
 */
export function createDefinitions(
  db: Db,
): (runs: readonly ClaimedRun[]) => Promise<(run: ClaimedRun) => Definition | null> {
  const agents = createStore((ids) => loadAgents(db, ids))
  const settings = createStore((ids) => loadSettings(db, ids))
  return async (runs) => {
    const [agentOf, settingsOf] = await Promise.all([
      agents(runs.flatMap((run) => (run.agent_id === null ? [] : [[run.agent_id, run.agent_changed]]))),
      settings(runs.map((run) => [run.project_id, run.project_changed])),
    ])
    return (run) => {
      const agent = run.part ? agentOfPart(run.part, run.project_id) : agentOf(run.agent_id ?? '')
      const ofProject = settingsOf(run.project_id)
      return agent && ofProject ? { agent, settings: ofProject } : null
    }
  }
}

function createStore<Value>(load: (ids: string[]) => Promise<Map<string, Value>>) {
  const kept = new Map<string, Kept<Value>>()
  return async (wanted: readonly [id: string, changed: number | null][]) => {
    // The claim holds its own definitions: other claims may push any of them out of the cache meanwhile.
    const found = new Map<string, Value>()
    const stale = new Map<string, number>()
    for (const [id, changed] of wanted) {
      const known = kept.get(id)
      if (changed === null) continue
      if (known?.changed === changed) {
        found.set(id, known.value)
        putNewest(kept, id, known, MOST_KEPT)
      } else stale.set(id, changed)
    }
    if (stale.size > 0) {
      // The definition may be newer than the one the claim saw; then the next claim reads it once more.
      for (const [id, value] of await load([...stale.keys()])) {
        found.set(id, value)
        putNewest(kept, id, { changed: stale.get(id) ?? 0, value }, MOST_KEPT)
      }
    }
    return (id: string): Value | null => found.get(id) ?? null
  }
}
