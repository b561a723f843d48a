// The prompt library as runs read it. A prompt is kept in this process until a notice says that it has changed. A
// notice can be lost, so nothing is believed for longer than five seconds.
import type { Db } from '../db/pool.ts'
import { promptMissing } from '../kernel/errors.ts'
import type { PromptMessage } from '../kernel/prompt.ts'
import { putNewest } from '../kernel/put-newest.ts'
import { findStored, type PromptKey } from './prompts.ts'
import type { ShippedPrompts } from './shipped-prompts.ts'
import { noticeOf } from './write-prompt.ts'

export interface LibraryPrompt {
  messages: readonly PromptMessage[]
  /** Null if the library does not tell the version. */
  version: number | null
}

export interface PromptLibrary {
  /** Throws PROMPT_MISSING (422), or UNAVAILABLE if the library cannot be asked now. */
  get(projectId: string, promptId: string, variantId: string): Promise<LibraryPrompt>
}

export interface CachedLibrary extends PromptLibrary {
  /** Called with the notice of a change, and after every change made in this process. */
  forget(notice: string): void
  /** Called when notices may have been lost. */
  forgetAll(): void
}

const BELIEVED_MS = 5_000
const MOST_ENTRIES = 1_000
/** The limit in characters. Larger prompts are read each time: the cache holds 64 million characters at most. */
const LARGEST_KEPT = 65_536

export function createPromptLibrary({
  db,
  shipped,
  now = () => performance.now(),
}: {
  db: Db
  shipped: ShippedPrompts
  /** Milliseconds that only go forward. */
  now?: () => number
}): CachedLibrary {
  const entries = new Map<string, { prompt: Promise<LibraryPrompt | null>; until: number }>()

  async function read(key: PromptKey): Promise<LibraryPrompt | null> {
    const stored = await findStored(db, key)
    if (stored) return stored.messages && { messages: stored.messages, version: stored.version }
    const messages = shipped.find(key.promptId, key.variantId)
    return messages && { messages, version: 1 }
  }

  async function find(key: PromptKey): Promise<LibraryPrompt | null> {
    const name = noticeOf(key)
    const known = entries.get(name)
    if (known && known.until > now()) return known.prompt
    // A prompt that changes while it is read is forgotten when its notice comes, even before the read has ended.
    const entry = { prompt: read(key), until: now() + BELIEVED_MS }
    putNewest(entries, name, entry, MOST_ENTRIES)
    const drop = (): void => {
      if (entries.get(name) === entry) entries.delete(name)
    }
    try {
      const prompt = await entry.prompt
      if (!prompt || sizeOf(prompt) > LARGEST_KEPT) drop()
      return prompt
    } catch (error) {
      drop()
      throw error
    }
  }

  return {
    get: async (projectId, promptId, variantId) => {
      const prompt = await find({ projectId, promptId, variantId })
      if (!prompt) throw promptMissing(promptId, variantId, { isDuringRun: true })
      return prompt
    },
    forget: (notice) => void entries.delete(notice),
    forgetAll: () => entries.clear(),
  }
}

const sizeOf = ({ messages }: LibraryPrompt): number => messages.reduce((sum, { content }) => sum + content.length, 0)
