/**
 * Bounds a cache: the entry becomes the newest, and when there are more than `most` entries the oldest are deleted. A
 * cache that was emptied when full would let one caller, who fills it, evict everybody's entries. A sixteenth is
 * deleted at a time, because a search for the oldest entry steps over all entries that were deleted from the front of a
 * Map.
 */
export function putNewest<Key, Value>(kept: Map<Key, Value>, key: Key, value: Value, most: number): void {
  kept.delete(key)
  kept.set(key, value)
  if (kept.size <= most) return
  const left = most - Math.floor(most / 16)
  for (const oldest of kept.keys()) {
    if (kept.size <= left) return
    kept.delete(oldest)
  }
}
