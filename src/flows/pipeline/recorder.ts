// Writes the events of a pipeline. While one append is being committed, notes are collected for the next append.
import { eventsOf, type Note, type PipelineEvent } from './pipeline-event.ts'

/** About as much as one append may hold. A single value may be more. */
const MOST_CHARACTERS = 1_048_576

export interface Recorder {
  /** `then` is called when the note is committed, in the order of the notes. It must not throw. */
  note(note: Note, characters: number, then?: () => void): void
  /** Resolves when all notes so far are committed; rejects if one of them cannot be. */
  committed(): Promise<void>
}

export interface RecorderOptions {
  leafId: string
  append: (events: PipelineEvent[]) => Promise<void>
  /** Called before the notes' own `then`. */
  onCommitted: (events: readonly PipelineEvent[]) => void
  /** Called when an append was refused: nothing is written any more. */
  onLost: (error: unknown) => void
}

interface Pending {
  note: Note | null
  characters: number
  then: () => void
  lose: (error: unknown) => void
}

const nothing = (): void => {}

export function createRecorder({ leafId, append, onCommitted, onLost }: RecorderOptions): Recorder {
  let pending: Pending[] = []
  let lost: { error: unknown } | null = null
  let isWriting = false

  const add = (entry: Pending): void => {
    if (lost) {
      entry.lose(lost.error)
      return
    }
    pending.push(entry)
    if (!isWriting) void writeAll()
  }
  return {
    note: (note, characters, then = nothing) => add({ note, characters, then, lose: nothing }),
    committed: () => new Promise((then, lose) => add({ note: null, characters: 0, then, lose })),
  }

  async function writeAll(): Promise<void> {
    isWriting = true
    let batch: Pending[] = []
    try {
      while (pending.length > 0) {
        // Stages that need not wait get as far as their buffers allow, and all their notes go into one append.
        await new Promise(setImmediate)
        batch = takeBatch()
        const notes = batch.flatMap(({ note }) => note ?? [])
        const events = eventsOf(leafId, notes)
        if (events.length > 0) {
          await append(events)
          onCommitted(events)
        }
        for (const { then } of batch) then()
      }
    } catch (error) {
      lost = { error }
      onLost(error)
      for (const { lose } of [...batch, ...pending]) lose(error)
      pending = []
    }
    isWriting = false
  }

  function takeBatch(): Pending[] {
    let characters = 0
    const end = pending.findIndex((entry, place) => {
      characters += entry.characters
      return place > 0 && characters > MOST_CHARACTERS
    })
    return pending.splice(0, end === -1 ? pending.length : end)
  }
}
