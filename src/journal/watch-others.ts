import type { Db } from '../db/pool.ts'
import type { Log } from '../kernel/log.ts'
import type { Hub } from './hub.ts'

const LOOK_EVERY_MS = 120

/**
 * Watched runs may be in another process, and facts from outside are written by whoever hears of them. One query for all
 * of them, a few times a second and only while somebody watches, finds what the hub was not told; a second one where
 * flow runs are among them.
 */
export function watchOthers({ db, hub, log }: { db: Db; hub: Hub; log: Log }): { stop(): Promise<void> } {
  let isStopped = false
  let timer: NodeJS.Timeout | undefined
  let looking = Promise.resolve()
  const lastSeqs = new Map<string, number>()
  const round = (): void => {
    looking = look()
      .catch((error: unknown) => log.debug({ err: error }, 'watched runs will be looked at again'))
      .then(() => {
        if (!isStopped) timer = setTimeout(round, LOOK_EVERY_MS)
      })
  }
  round()
  return {
    stop: async () => {
      isStopped = true
      clearTimeout(timer)
      await looking
    },
  }

  async function look(): Promise<void> {
    const watched = hub.watched()
    for (const runId of lastSeqs.keys()) if (!watched.includes(runId)) lastSeqs.delete(runId)
    if (watched.length === 0) return
    const runs = await lastSeqsIn('agent_runs', watched)
    const known = new Set(runs.map((row) => row.id))
    const others = watched.filter((id) => !known.has(id))
    const flowRuns = others.length === 0 ? [] : await lastSeqsIn('flow_runs', others)
    for (const { id, last_seq } of [...runs, ...flowRuns]) {
      known.add(id)
      if (lastSeqs.get(id) === last_seq) continue
      lastSeqs.set(id, last_seq)
      hub.poke(id)
    }
    for (const id of watched) if (!known.has(id)) hub.end(id)
    if (runs.length > 0) await lookAtTexts(runs.map((row) => row.id))
  }

  async function lastSeqsIn(
    table: 'agent_runs' | 'flow_runs',
    ids: readonly string[],
  ): Promise<{ id: string; last_seq: number }[]> {
    const { rows } = await db.query<{ id: string; last_seq: number }>(
      `select id, last_seq from ${table} where id = any($1::uuid[])`,
      [ids],
    )
    return rows
  }

  /** Of the watched runs and of their sub-runs, whose text their ancestors' streams show too. */
  async function lookAtTexts(watched: readonly string[]): Promise<void> {
    const { rows } = await db.query<{ run_id: string; ancestors: string[]; step: number; text: string }>(
      `select t.run_id, r.ancestors, t.step, t.text from run_live_text t join agent_runs r on r.id = t.run_id
       where t.step > r.step_count and (r.id = any($1::uuid[]) or r.ancestors && $1::uuid[])`,
      [watched],
    )
    for (const { run_id: runId, ancestors, step, text } of rows) {
      for (const watcher of [runId, ...ancestors]) hub.publishText(watcher, { runId, step, offset: 0, text })
    }
  }
}
