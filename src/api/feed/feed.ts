// The feed: what changed in projects, for lists that are on somebody's screen. While somebody reads it, one statement a
// few times a second finds the changes of all readers of this process, whichever process made them; without readers it
// sends no statement.
//
// A reader's place is a set of transactions (seen.ts), which is also the id of its events, so any process can go on from
// it. Readers who have seen the same share the statement. A reader that has come just now, or was too slow for the last
// round, is read for by itself until it has caught up.
import type { Db } from '../../db/pool.ts'
import type { Log } from '../../kernel/log.ts'
import { repeat } from '../../kernel/repeat.ts'
import type { EventStream } from '../http/sse.ts'
import { type FeedPlace, HOLDS_MS, holds, readId } from './place.ts'
import { type Change, readChanges, readPresent, readProgress } from './read-changes.ts'
import { markReader, type Reader, tellReader } from './reader.ts'
import { allSeen } from './seen.ts'

export interface Feed {
  /** The place at which a stream begins; call it before the answer begins, so that no later change is missed. */
  begin(lastEventId: unknown): Promise<Beginning>
  join(follower: Follower): Following
  stop(): Promise<void>
}

export interface Beginning {
  place: FeedPlace
  /** True if the reader cannot go on from its last id. */
  mustReset: boolean
}

export interface Follower extends Beginning {
  stream: EventStream
  projects: Iterable<string>
  namesProject: boolean
}

export interface Following {
  /** The reader's place now. */
  place(): FeedPlace
  /** Changes in projects that have come are told from `since` on. `mustReset`: the lists must be read again. */
  setProjects(projects: Iterable<string>, options: { since: FeedPlace; mustReset: boolean }): void
  leave(): void
}

/** Rounds never overlap and are at least this far apart, so a thing is told at most once in a tenth of a second. */
const LOOK_EVERY_MS = 120
/** With thousands of projects a round takes longer. Then the pause is as long as the round, up to this. */
const LONGEST_PAUSE_MS = 2_000
/** Runs at work change with every step; people need to see that once a second. */
const PROGRESS_EVERY_MS = 1_000
/** Readers who are read for by themselves, at once. */
const BEHIND_AT_ONCE = 4

export function createFeed({ db, log }: { db: Db; log: Log }): Feed {
  const readers = new Set<Reader>()
  let stopRounds: (() => Promise<void>) | null = null
  let roundMs = 0
  let progressAt = 0

  return {
    begin: async (lastEventId) => {
      const last = lastEventId === undefined ? null : readId(lastEventId)
      const now = await readPresent(db)
      if (last && holds(last, now)) return { place: { ...now, at: last.at, seen: last.seen }, mustReset: false }
      return { place: now, mustReset: last !== null }
    },
    join: (follower) => {
      const reader = readerOf(follower)
      readers.add(reader)
      if (!reader.mustReset) markReader(reader)
      stopRounds ??= startRounds()
      return {
        place: () => reader.place,
        setProjects: (projects, { since, mustReset }) => {
          const now = new Set(projects)
          const come = [...now].filter((id) => !reader.projects.has(id))
          reader.projects = now
          reader.mustReset ||= mustReset
          if (come.length === 0) return
          reader.joined = {
            projects: [...(reader.joined?.projects ?? []), ...come],
            since: reader.joined?.since ?? since.seen,
          }
          reader.isLive = false
        },
        leave: () => void readers.delete(reader),
      }
    },
    stop: async () => {
      readers.clear()
      await stopRounds?.()
    },
  }

  function startRounds(): () => Promise<void> {
    return repeat({
      work: round,
      everyMs: () => Math.max(LOOK_EVERY_MS, Math.min(LONGEST_PAUSE_MS, roundMs)),
      ifItFails: 'the changes for open lists could not be read; they will be read again',
      log,
    })
  }

  async function round(): Promise<void> {
    if (readers.size === 0) {
      void stopRounds?.()
      stopRounds = null
      return
    }
    const began = performance.now()
    const hasProgress = began - progressAt >= PROGRESS_EVERY_MS
    if (hasProgress) progressAt = began
    const free = [...readers].filter((reader) => !reader.isBusy)
    const live = free.filter((reader) => reader.isLive)
    const behind = free.filter((reader) => !reader.isLive)
    for (const reader of readers) if (reader.isBusy) reader.isLive = false
    if (live.length > 0) await serve(live, hasProgress)
    for (let first = 0; first < behind.length; first += BEHIND_AT_ONCE) {
      await Promise.all(behind.slice(first, first + BEHIND_AT_ONCE).map((reader) => serveBehind(reader, hasProgress)))
    }
    roundMs = performance.now() - began
  }

  /** A reader that was told nothing for longer than an id holds begins anew. */
  async function serveBehind(reader: Reader, hasProgress: boolean): Promise<void> {
    if (performance.now() - reader.markedAt > HOLDS_MS) {
      reader.place = await readPresent(db)
      reader.mustReset = true
    }
    await serve([reader], hasProgress)
  }

  /**
   * Reads once for all of the given readers. If there is too much for one page, each is read for by itself in the next
   * round, so that the changes in one project hold up nobody else.
   */
  async function serve(group: readonly Reader[], hasProgress: boolean): Promise<void> {
    const projects = [...new Set(group.flatMap((reader) => [...reader.projects]))]
    const read = await readChanges(db, projects, allSeen(group.map((reader) => reader.place.seen)))
    if (group.length > 1 && (read.isTooMuch || !read.isWhole)) {
      for (const reader of group) reader.isLive = false
      return
    }
    const progress = hasProgress ? await readProgress(db, projects) : null
    for (const reader of group) tellReader(reader, { read, progress, ofJoined: await readJoined(db, reader) })
  }
}

const readerOf = ({ stream, projects, namesProject, place, mustReset }: Follower): Reader => ({
  stream,
  namesProject,
  projects: new Set(projects),
  joined: null,
  place,
  progress: place.seen,
  isBusy: false,
  isLive: false,
  mustReset,
  markedAt: performance.now(),
})

/** The changes in projects that have come, since the reader could not see them yet. */
async function readJoined(db: Db, reader: Reader): Promise<readonly Change[]> {
  const { joined } = reader
  if (!joined) return []
  const { changes, isWhole, isTooMuch } = await readChanges(db, joined.projects, joined.since)
  if (reader.joined === joined) reader.joined = null
  reader.mustReset ||= isTooMuch || !isWhole
  return changes
}
