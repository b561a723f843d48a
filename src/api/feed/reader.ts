import type { EventStream } from '../http/sse.ts'
import { type FeedPlace, idOf } from './place.ts'
import type { Change, Changes } from './read-changes.ts'
import { eitherSeen, isSeen, type Seen } from './seen.ts'

/** One stream of the feed, with its place. It keeps no changes: a reader that is slow is told later, by then in one state. */
export interface Reader {
  stream: EventStream
  /** The data of the events name the project. */
  namesProject: boolean
  projects: ReadonlySet<string>
  /** Projects that came since the last round, with the place from which the reader is told of them. */
  joined: { projects: readonly string[]; since: Seen } | null
  place: FeedPlace
  /** The progress of runs at work that the reader was told of. */
  progress: Seen
  /** True while the connection takes no more. */
  isBusy: boolean
  /** True if the reader was told of all changes in the last round. */
  isLive: boolean
  /** True: the lists must be read again, before anything else is told. */
  mustReset: boolean
  /** The time at which the reader was last told its place, by the clock of `performance`. */
  markedAt: number
}

/** A reader without news is told its place this often, so that its last id is never old. */
const MARK_EVERY_MS = 15_000

export interface News {
  read: Changes
  /** Runs at work; null if it is not their turn. */
  progress: Pick<Changes, 'changes' | 'seen'> | null
  /** Changes in projects that came since the last round. */
  ofJoined: readonly Change[]
}

/** Moves the reader's place on, and tells it the changes since. Each thing is told once, in its last state. */
export function tellReader(reader: Reader, news: News): void {
  const { read, progress } = news
  // A database that is behind the reader has lost transactions: another server has taken its place.
  if (read.isTooMuch || read.present.before < reader.place.seen.before) {
    reader.place = { ...reader.place, at: read.at, seen: read.present }
    reader.mustReset = true
  }
  const before = reader.place
  const told = new Set<string>()
  const isNew = ({ id, project_id: projectId }: Change): boolean => {
    if (!reader.projects.has(projectId) || told.has(id)) return false
    told.add(id)
    return true
  }
  const changes = read.changes.filter((change) => !isSeen(before.seen, change.transaction) && isNew(change))
  const ofJoined = news.ofJoined.filter(isNew)
  const atWork = progress?.changes.filter((each) => !isSeen(reader.progress, each.transaction) && isNew(each)) ?? []
  reader.place = { ...before, at: read.at, seen: eitherSeen(before.seen, read.seen) }
  reader.isLive = read.isWhole
  if (progress) reader.progress = progress.seen
  const events = [
    ...(reader.mustReset ? [resetOf(before)] : []),
    ...ofJoined.map((change) => eventOf(reader, change, idOf(before))),
    ...eventsOf(reader, changes, before),
    ...atWork.map((change) => eventOf(reader, change, idOf(reader.place))),
  ]
  reader.mustReset = false
  if (events.length > 0) send(reader, () => reader.stream.send(...events))
  else if (performance.now() - reader.markedAt > MARK_EVERY_MS) markReader(reader)
}

/** Tells the reader its place, from which it can go on later. */
export function markReader(reader: Reader): void {
  send(reader, () => reader.stream.mark(idOf(reader.place)))
}

function send(reader: Reader, sending: () => Promise<void>): void {
  reader.isBusy = true
  reader.markedAt = performance.now()
  void sending().then(() => {
    reader.isBusy = false
  })
}

/**
 * Each event has the place of a reader that has taken the events up to it. Changes of one transaction have the place before
 * it, but for the last of them: a reader that is cut between two of them is told of them again, and misses none.
 */
function eventsOf(reader: Reader, changes: readonly Change[], before: FeedPlace) {
  const { at, seen: all } = reader.place
  let id = idOf(before)
  return changes.map((change, index) => {
    const next = changes[index + 1]?.transaction
    if (next === undefined) id = idOf(reader.place)
    else if (next !== change.transaction)
      id = idOf({ ...before, at, seen: seenUpTo(before.seen, all, change.transaction) })
    return eventOf(reader, change, id)
  })
}

/** The transactions that were seen before, and those up to the given one that are seen now. */
function seenUpTo(before: Seen, all: Seen, transaction: number): Seen {
  const open = new Set([...before.except, ...all.except])
  const late = [...open].filter((each) => (each <= transaction ? !isSeen(all, each) : !isSeen(before, each)))
  const end = Math.max(before.before, transaction + 1)
  return { before: end, except: late.filter((each) => each < end).toSorted((a, b) => a - b) }
}

function eventOf({ namesProject }: Reader, change: Change, id: string) {
  const { kind, project_id: projectId, status, at } = change
  const data = { kind, id: change.id, ...(namesProject ? { project_id: projectId } : {}), status, at: at.toISOString() }
  return { id, event: 'change', data }
}

const resetOf = (place: FeedPlace) => ({
  id: idOf(place),
  event: 'reset',
  data: { at: new Date(place.at).toISOString() },
})
