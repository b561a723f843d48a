// The text of steps under way. Tokens are not journalled: they go at once to watchers in this process, and where other
// processes live too the text so far is kept in a table that they read several times a second.
import type { Db } from '../db/pool.ts'
import type { Log } from '../kernel/log.ts'
import type { Hub, LiveText } from './hub.ts'

const WRITE_EVERY_MS = 100

export interface LiveTexts {
  /** `ancestors` see the text in their streams as well. */
  add(text: LiveText, ancestors: readonly string[]): void
  /** The text so far of the run's step under way in this process. */
  soFar(runId: string): LiveText | null
  /** The same of its sub-runs, at any depth. */
  soFarBelow(runId: string): LiveText[]
  /** The run has left this process. */
  drop(runId: string): void
  stop(): void
}

export function createLiveTexts(options: { db: Db; hub: Hub; hasOthers: () => boolean; log: Log }): LiveTexts {
  const texts = new Map<string, LiveText & { ancestors: readonly string[] }>()
  const unwritten = new Set<string>()
  let timer: NodeJS.Timeout | null = null
  let isStopped = false

  return {
    add: (piece, ancestors) => {
      const known = texts.get(piece.runId)
      const isNew = !known || known.step !== piece.step || piece.offset === 0
      texts.set(piece.runId, isNew ? { ...piece, ancestors } : { ...known, text: known.text + piece.text })
      options.hub.publishText(piece.runId, piece)
      for (const ancestor of ancestors) options.hub.publishText(ancestor, piece)
      unwritten.add(piece.runId)
      if (!timer) wait()
    },
    soFar: (runId) => texts.get(runId) ?? null,
    soFarBelow: (runId) => [...texts.values()].filter((text) => text.ancestors.includes(runId)),
    drop: (runId) => {
      texts.delete(runId)
      unwritten.delete(runId)
    },
    stop: () => {
      isStopped = true
      if (timer) clearTimeout(timer)
    },
  }

  function wait(): void {
    timer = isStopped ? null : setTimeout(round, WRITE_EVERY_MS).unref()
  }

  /** Another process may join in mid-text: what it has not seen waits for it. */
  async function round(): Promise<void> {
    if (options.hasOthers()) await write()
    if (unwritten.size > 0) wait()
    else timer = null
  }

  async function write(): Promise<void> {
    const due = [...unwritten]
      .flatMap((runId) => texts.get(runId) ?? [])
      .toSorted((a, b) => (a.runId < b.runId ? -1 : 1))
    unwritten.clear()
    try {
      await options.db.query(
        `insert into run_live_text (run_id, step, text)
         select * from unnest($1::uuid[], $2::int[], $3::text[])
         on conflict (run_id) do update set step = excluded.step, text = excluded.text`,
        [due.map((one) => one.runId), due.map((one) => one.step), due.map((one) => storable(one.text))],
      )
    } catch (error) {
      options.log.debug({ err: error }, 'the text of steps under way will be shared later')
      for (const { runId } of due) if (texts.has(runId)) unwritten.add(runId)
    }
  }
}

/** A piece may end within a surrogate pair; its other half comes with the next. */
const storable = (text: string): string => text.replaceAll('\0', '\ufffd').toWellFormed()

/** Rows of steps that are over: their runs have gone on, ended, or are gone. */
export async function pruneLiveText(db: Db): Promise<void> {
  await db.query(
    `delete from run_live_text t where not exists (
       select from agent_runs r where r.id = t.run_id and r.owner is not null and r.step_count < t.step)`,
  )
}
