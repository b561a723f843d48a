const MOST_AT_ONCE = 16

/** Works on all items side by side, but on a bounded number at a time. Rejects with the first failure. */
export async function atOnce<Item>(
  items: readonly Item[],
  work: (item: Item, index: number) => Promise<void>,
): Promise<void> {
  const queue = items.entries()
  const worker = async (): Promise<void> => {
    for (const [index, item] of queue) await work(item, index)
  }
  await Promise.all(Array.from({ length: Math.min(MOST_AT_ONCE, items.length) }, worker))
}
