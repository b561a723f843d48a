/**
 * Bounds a memory of what was read: the entry becomes the newest, and where there are more than `most` the oldest go. A
 * memory that was emptied when full would let whoever fills it take everybody's entries.
 */
export function putNewest<Key, Value>(kept: Map<Key, Value>, key: Key, value: Value, most: number): void {
  kept.delete(key)
  kept.set(key, value)
  for (const oldest of kept.keys()) {
    if (kept.size <= most) return
    kept.delete(oldest)
  }
}
