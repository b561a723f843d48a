// A found key is cached for two seconds, so a revoked key stops working well within the promised five.
import type { Db } from '../db/pool.ts'
import { putNewest } from '../kernel/put-newest.ts'
import { sha256 } from '../secrets/hash.ts'
import { findLiveKey, type LiveKey } from './api-keys.ts'
import { isWellFormedKey } from './key-format.ts'

const BELIEVED_MS = 2_000
const MOST_ENTRIES = 10_000

export interface KeyCache {
  /** `beforeLookup` is called, and may throw, before the database is asked. */
  find(key: string, beforeLookup?: () => void): Promise<LiveKey | null>
  forgetKey(keyId: string): void
  forgetProjects(projectIds: ReadonlySet<string>): void
}

export function createKeyCache(db: Db, now: () => number = Date.now): KeyCache {
  const entries = new Map<string, { key: Promise<LiveKey | null>; until: number; found: LiveKey | null }>()

  return {
    async find(key, beforeLookup) {
      if (!isWellFormedKey(key)) return null
      // The map is keyed by hash, so that the process holds no list of usable keys.
      const name = sha256(key).toString('base64')
      const known = entries.get(name)
      if (known && known.until > now()) return known.key
      beforeLookup?.()
      const entry = { key: findLiveKey(db, key), until: now() + BELIEVED_MS, found: null as LiveKey | null }
      putNewest(entries, name, entry, MOST_ENTRIES)
      try {
        entry.found = await entry.key
        return entry.found
      } catch (error) {
        entries.delete(name)
        throw error
      }
    },
    forgetKey: (keyId) => forget((found) => found.id === keyId),
    forgetProjects: (projectIds) => forget((found) => projectIds.has(found.projectId)),
  }

  function forget(matches: (found: LiveKey) => boolean): void {
    for (const [name, entry] of entries) if (!entry.found || matches(entry.found)) entries.delete(name)
  }
}
