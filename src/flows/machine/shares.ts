/** Equal shares of the items: contiguous, none empty, and their lengths differ by one at most. */
export function sharesOf<Item>(items: readonly Item[], count: number): Item[][] {
  const shares = Math.min(count, items.length)
  const at = (place: number): number => Math.floor((place * items.length) / shares)
  return Array.from({ length: shares }, (_, place) => items.slice(at(place), at(place + 1)))
}
