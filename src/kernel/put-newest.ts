/**
 * Bounds a memory of what was read: the entry becomes the newest, and where there are more than `most` the oldest go. A
 * memory that was emptied when full would let whoever fills it take everybody's entries. They go a sixteenth at a time:
 * a Map steps over the places of all that was deleted from its front whenever one looks for the oldest.
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
