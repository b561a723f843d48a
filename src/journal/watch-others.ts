import type { Db } from '../db/pool.ts'
import type { Log } from '../kernel/log.ts'
import type { Hub } from './hub.ts'

const LOOK_EVERY_MS = 120

/**
 * Watched runs may be in another process, and facts from outside are written by whoever hears of them. One query for all
 * of them, a few times a second and only while somebody watches, finds what the hub was not told.
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
    const { rows } = await db.query<{ id: string; last_seq: number; step: number | null; text: string | null }>(
      `select r.id, r.last_seq, t.step, t.text from agent_runs r
       left join run_live_text t on t.run_id = r.id and t.step > r.step_count
       where r.id = any($1::uuid[])`,
      [watched],
    )
    for (const { id, last_seq, step, text } of rows) {
      if (lastSeqs.get(id) !== last_seq) {
        lastSeqs.set(id, last_seq)
        hub.poke(id)
      }
      if (step !== null && text !== null) hub.publishText(id, { runId: id, step, offset: 0, text })
    }
  }
}
