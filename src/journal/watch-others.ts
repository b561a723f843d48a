import type { Db } from '../db/pool.ts'
import type { Log } from '../kernel/log.ts'
import { repeat } from '../kernel/repeat.ts'
import type { Hub, LiveText } from './hub.ts'

const LOOK_EVERY_MS = 120

export interface Others {
  /** The text so far of a watched run's step under way in another process. */
  soFar(runId: string): LiveText | null
  /** The texts so far of the sub-runs' steps under way in other processes, at any depth. */
  soFarBelow(runId: string): LiveText[]
  stop(): Promise<void>
}

interface Known {
  version: number
  step: number
  text: string
  ancestors: string[]
}

interface TextRow {
  run_id: string
  version: number
  step: number
  ancestors: string[]
  /** The new text; null if there is none. */
  text: string | null
}

/**
 * Watched runs may be in another process. A few times a second, only while somebody watches, one query finds the events
 * that the hub was not told, one the new text of steps under way, and one the events of watched flow runs.
 */
export function watchOthers(options: { db: Db; hub: Hub; log: Log; lookEveryMs?: number }): Others {
  const { db, hub, log, lookEveryMs = LOOK_EVERY_MS } = options
  let lastSeqs = new Map<string, number>()
  let texts = new Map<string, Known>()
  const stop = repeat({
    work: look,
    everyMs: lookEveryMs,
    ifItFails: 'watched runs will be looked at again',
    level: 'debug',
    log,
  })
  return {
    soFar: (runId) => {
      const known = texts.get(runId)
      return known ? { runId, step: known.step, offset: 0, text: known.text } : null
    },
    soFarBelow: (runId) =>
      [...texts]
        .filter(([, { ancestors }]) => ancestors.includes(runId))
        .map(([id, { step, text }]) => ({ runId: id, step, offset: 0, text })),
    stop,
  }

  /**
   * Texts are read before the numbers of events and told after them: a watcher that is told of a text has read every
   * event before it, such as the one that voids an earlier text of the step.
   */
  async function look(): Promise<void> {
    const watched = hub.watched()
    const said = watched.length === 0 ? [] : await readTexts(watched)
    const runs = watched.length === 0 ? [] : await lastSeqsIn('agent_runs', watched)
    const known = new Set(runs.map((row) => row.id))
    const others = watched.filter((id) => !known.has(id))
    const flowRuns = others.length === 0 ? [] : await lastSeqsIn('flow_runs', others)
    const seen = new Map<string, number>()
    for (const { id, last_seq } of [...runs, ...flowRuns]) {
      known.add(id)
      seen.set(id, last_seq)
      if (lastSeqs.get(id) !== last_seq) hub.poke(id)
    }
    lastSeqs = seen
    for (const id of watched) if (!known.has(id)) hub.end(id)
    tellTexts(said)
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

  /** Reads the texts of the watched runs and of their sub-runs, because the ancestors' streams show those too. */
  async function readTexts(watched: readonly string[]): Promise<TextRow[]> {
    const known = [...texts]
    const { rows } = await db.query<TextRow>(READ_TEXTS, [
      watched,
      known.map(([runId]) => runId),
      known.map(([, { version }]) => version),
      known.map(([, { text }]) => text.length),
    ])
    return rows
  }

  function tellTexts(rows: readonly TextRow[]): void {
    const before = texts
    texts = new Map()
    for (const { run_id: runId, version, step, ancestors, text } of rows) {
      const known = before.get(runId)
      const soFar = known?.version === version ? known.text : ''
      texts.set(runId, { version, step, ancestors, text: soFar + (text ?? '') })
      if (text === null) continue
      const piece = { runId, step, offset: soFar.length, text }
      for (const watcher of [runId, ...ancestors]) hub.publishText(watcher, piece)
    }
  }
}

// One head per step under way that has written text; its pieces are read by key, from the known offset on.
const READ_TEXTS = {
  name: 'read-live-texts',
  text: `
    select h.run_id, h.version, h.step, h.ancestors,
      (select string_agg(p.text, '' order by p.start) from live_text_pieces p
       where p.run_id = h.run_id and p.version = h.version
         and h.length > coalesce(k.length, 0) and p.start >= coalesce(k.length, 0)) as text
    from live_texts h
    join agent_runs r on r.id = h.run_id and r.step_count < h.step
    left join unnest($2::uuid[], $3::bigint[], $4::int[]) as k (run_id, version, length)
      on k.run_id = h.run_id and k.version = h.version
    where h.run_id = any($1::uuid[]) or h.ancestors && $1::uuid[]`,
}
