/** The first items whose sizes together are no more than `most`; at least one item if there is any. */
export function asManyAsFit<Item>(items: readonly Item[], sizeOf: (item: Item) => number, most: number): Item[] {
  let sum = 0
  const tooMany = items.findIndex((item, place) => {
    sum += sizeOf(item)
    return place > 0 && sum > most
  })
  return tooMany === -1 ? [...items] : items.slice(0, tooMany)
}
