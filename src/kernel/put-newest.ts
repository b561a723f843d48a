/**
 * Bounds a cache: the oldest entries go first. Emptying a full cache would let one caller, who fills it, evict
 * everybody's entries. A sixteenth is deleted at a time, because a search for the oldest entry of a Map steps over all
 * entries that were deleted from its front.
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
