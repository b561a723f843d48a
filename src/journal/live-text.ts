// The text of steps under way. Tokens are not journalled: they go at once to watchers in this process. While other
// processes live, new text is written several times a second as a piece, which they read by offset (watch-others.ts).
import { randomInt } from 'node:crypto'
import type { Db } from '../db/pool.ts'
import type { Log } from '../kernel/log.ts'
import { cleanText } from './clean-json.ts'
import type { StoredEvent } from './entries.ts'
import type { Hub, LiveText } from './hub.ts'

const WRITE_EVERY_MS = 100

export interface LiveTexts {
  /** `ancestors` see the text in their streams as well. */
  add(text: LiveText, ancestors: readonly string[]): void
  /** The text so far of the run's step under way in this process. */
  soFar(runId: string): LiveText | null
  /** The texts so far of the sub-runs' steps under way in this process, at any depth. */
  soFarBelow(runId: string): LiveText[]
  /** Called when the run has left this process. */
  drop(runId: string): void
  /** Resolves when dropped texts are gone from the table as well, or cannot be removed. */
  stop(): Promise<void>
}

interface Kept {
  runId: string
  step: number
  text: string
  ancestors: readonly string[]
  /** Differs for each text, so that the text of a restarted step is never mixed with its earlier text. */
  version: number
  /** The number of characters of the text that the table holds. */
  written: number
}

interface Piece {
  kept: Kept
  text: string
}

export function createLiveTexts(options: {
  db: Db
  hub: Hub
  hasOthers: () => boolean
  log: Log
  writeEveryMs?: number
}): LiveTexts {
  const { writeEveryMs = WRITE_EVERY_MS } = options
  const texts = new Map<string, Kept>()
  const unwritten = new Set<string>()
  /** Ended texts that may still have pieces in the table. */
  let ended: Kept[] = []
  let timer: NodeJS.Timeout | null = null
  let writing = Promise.resolve()
  let isStopped = false
  options.hub.hear((events) => stepsOver(events, texts).forEach(end))

  return {
    add: (piece, ancestors) => {
      const known = texts.get(piece.runId)
      if (known && known.step === piece.step && piece.offset > 0) known.text += piece.text
      else begin(piece, ancestors)
      options.hub.publishText(piece.runId, piece)
      for (const ancestor of ancestors) options.hub.publishText(ancestor, piece)
      unwritten.add(piece.runId)
      wait()
    },
    soFar: (runId) => {
      const known = texts.get(runId)
      return known ? shown(known) : null
    },
    soFarBelow: (runId) => [...texts.values()].filter((text) => text.ancestors.includes(runId)).map(shown),
    drop: end,
    stop: async () => {
      isStopped = true
      if (timer) clearTimeout(timer)
      await writing
      if (ended.length > 0) await write()
    },
  }

  function begin({ runId, step, text }: LiveText, ancestors: readonly string[]): void {
    end(runId)
    texts.set(runId, { runId, step, text, ancestors, version: newVersion(), written: 0 })
  }

  function end(runId: string): void {
    const known = texts.get(runId)
    if (!known) return
    texts.delete(runId)
    unwritten.delete(runId)
    ended.push(known)
    wait()
  }

  function wait(): void {
    if (timer || isStopped) return
    timer = setTimeout(() => {
      writing = round()
    }, writeEveryMs).unref()
  }

  /** Another process may start in mid-text, so unwritten text is kept until there is another process. */
  async function round(): Promise<void> {
    if (options.hasOthers() || ended.some(mayBeWritten)) await write()
    ended = ended.filter(mayBeWritten)
    timer = null
    if (unwritten.size > 0 || ended.length > 0) wait()
  }

  async function write(): Promise<void> {
    const due = options.hasOthers() ? [...unwritten].flatMap((runId) => nextPiece(texts.get(runId))) : []
    due.sort((a, b) => (a.kept.runId < b.kept.runId ? -1 : 1))
    const speaking = new Set(due.map(({ kept }) => kept.runId))
    // A head that is written anew must not be deleted as well; the write itself deletes pieces of other versions.
    const over = ended.filter(({ runId }) => !speaking.has(runId))
    for (const runId of speaking) unwritten.delete(runId)
    try {
      await writeTexts(options.db, over, due)
      for (const { kept, text } of due) kept.written += text.length
      const gone = new Set([...over, ...ended.filter(({ runId }) => speaking.has(runId))])
      ended = ended.filter((kept) => !gone.has(kept))
    } catch (error) {
      options.log.debug({ err: error }, 'the text of steps under way will be shared later')
      for (const { kept } of due) {
        // The write may have been committed all the same: the whole text is written again, under another version.
        ended.push({ ...kept, written: kept.text.length })
        kept.version = newVersion()
        kept.written = 0
        if (texts.get(kept.runId) === kept) unwritten.add(kept.runId)
      }
    }
  }
}

/** The runs whose texts the journal has whole, or whose texts are void. An event of a sub-run names the sub-run. */
const stepsOver = (events: readonly StoredEvent[], texts: ReadonlyMap<string, Kept>): string[] =>
  events.flatMap(({ runId, kind, data }) => {
    const known = kind === 'step.completed' || kind === 'step.restarted' ? texts.get(runId) : undefined
    if (!known) return []
    const { run_id = runId, step } = JSON.parse(data) as { run_id?: string; step: number } // both carry the step
    return run_id === runId && step >= known.step ? [runId] : []
  })

// Deletes pieces and heads of steps that are over, then writes heads and new pieces in place of earlier versions.
const WRITE = {
  name: 'write-live-text',
  text: `
    with over as (select * from unnest($1::uuid[], $2::bigint[]) as o (run_id, version)),
    heads_gone as (
      delete from live_texts t using over where t.run_id = over.run_id and t.version = over.version),
    pieces_gone as (
      delete from live_text_pieces p using over where p.run_id = over.run_id and p.version = over.version),
    said as (
      select * from unnest($3::uuid[], $4::bigint[], $5::int[], $6::int[], $7::int[], $8::text[], $9::text[])
        as s (run_id, version, step, start, length, ancestors, text)),
    heads as (
      insert into live_texts (run_id, version, step, length, ancestors)
      select run_id, version, step, length, ancestors::uuid[] from said
      on conflict (run_id) do update
        set version = excluded.version, step = excluded.step, length = excluded.length, ancestors = excluded.ancestors),
    replaced as (
      delete from live_text_pieces p using said where p.run_id = said.run_id and p.version <> said.version)
    insert into live_text_pieces (run_id, version, start, text) select run_id, version, start, text from said`,
}

async function writeTexts(db: Db, over: readonly Kept[], due: readonly Piece[]): Promise<void> {
  await db.query(WRITE, [
    over.map(({ runId }) => runId),
    over.map(({ version }) => version),
    due.map(({ kept }) => kept.runId),
    due.map(({ kept }) => kept.version),
    due.map(({ kept }) => kept.step),
    due.map(({ kept }) => kept.written),
    due.map(({ kept, text }) => kept.written + text.length),
    due.map(({ kept }) => `{${kept.ancestors.join(',')}}`),
    due.map(({ text }) => cleanText(text)),
  ])
}

const newVersion = (): number => randomInt(2 ** 47)

const shown = ({ runId, step, text }: Kept): LiveText => ({ runId, step, offset: 0, text })

/** The table may hold pieces of the text, also from a write that failed. */
const mayBeWritten = ({ written }: Kept): boolean => written > 0

/** A piece must not end within a surrogate pair, which would stay broken: the first half waits for the second. */
function nextPiece(kept: Kept | undefined): Piece[] {
  if (!kept) return []
  const fresh = kept.text.slice(kept.written)
  const text = /[\ud800-\udbff]$/.test(fresh) ? fresh.slice(0, -1) : fresh
  return text === '' ? [] : [{ kept, text }]
}

/** Removes texts of steps that are over. Only killed processes leave such texts. */
export async function pruneLiveText(db: Db): Promise<void> {
  await db.query(
    `with over as (
       delete from live_texts t where not exists (
         select from agent_runs r where r.id = t.run_id and r.owner is not null and r.step_count < t.step)
       returning run_id)
     delete from live_text_pieces p where p.run_id in (select run_id from over)
       or not exists (select from live_texts t where t.run_id = p.run_id)`,
  )
}
