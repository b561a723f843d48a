/** A queue with two ends. Each step has a constant cost; an array's `shift` would move all items behind the first. */
export interface PoolQueue<Entry> {
  readonly length: number
  push(entry: Entry): void
  shift(): Entry | undefined
  /** Takes the item that would wait longest, from the far end. */
  pop(): Entry | undefined
  drain(): Entry[]
}

export function createPoolQueue<Entry>(): PoolQueue<Entry> {
  // A ring that doubles when it is full; its length is a power of two, so that a mask finds the slot.
  let ring: (Entry | undefined)[] = new Array(16)
  let head = 0
  let length = 0
  const slot = (place: number): number => (head + place) & (ring.length - 1)

  const grow = (): void => {
    if (length < ring.length) return
    const inOrder = [...ring.slice(head), ...ring.slice(0, head)]
    ring = inOrder.concat(new Array(ring.length))
    head = 0
  }
  const take = (at: number): Entry | undefined => {
    const entry = ring[at]
    ring[at] = undefined
    return entry
  }
  const shift = (): Entry | undefined => {
    if (length === 0) return undefined
    const entry = take(head)
    head = slot(1)
    length--
    return entry
  }

  return {
    get length() {
      return length
    },
    push: (entry) => {
      grow()
      ring[slot(length)] = entry
      length++
    },
    shift,
    pop: () => {
      if (length === 0) return undefined
      length--
      return take(slot(length))
    },
    drain: () => {
      const entries: Entry[] = []
      for (let entry = shift(); entry !== undefined; entry = shift()) entries.push(entry)
      return entries
    },
  }
}
