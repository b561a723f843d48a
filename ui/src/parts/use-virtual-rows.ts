// Of a long list only the rows in view exist, so that thousands of rows cost as much as thirty.
import { useVirtualizer, type VirtualItem } from '@tanstack/react-virtual'
import { type KeyboardEvent, type PointerEvent, useCallback, useRef } from 'react'

interface Options {
  count: number
  rowHeight: number
  keyOf: (index: number) => string
  /** Somebody scrolls: `show` is not told, nor a list that becomes shorter. */
  onScroll?: () => void
}

const OVERSCAN = 5
const SCROLLING_KEYS = new Set(['PageUp', 'PageDown', 'Home', 'End', 'ArrowUp', 'ArrowDown'])

export function useVirtualRows({ count, rowHeight, keyOf, onScroll }: Options) {
  const scroller = useRef<HTMLDivElement>(null)
  const rows = useVirtualizer({
    count,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowHeight,
    getItemKey: keyOf,
    overscan: OVERSCAN,
    // Without it the end of a scroll is a timer, which reads the layout at a time when it is out of date.
    useScrollendEvent: true,
  })
  const items: VirtualItem[] = rows.getVirtualItems()
  return {
    /** The rows that exist. */
    items,
    /** The height of the rows before and after them. */
    before: items[0]?.start ?? 0,
    after: rows.getTotalSize() - (items.at(-1)?.end ?? 0),
    /** Of the element that scrolls. */
    scroll: {
      ref: scroller,
      onWheel: onScroll,
      onTouchMove: onScroll,
      onKeyDown: ({ key }: KeyboardEvent) => {
        if (SCROLLING_KEYS.has(key)) onScroll?.()
      },
      // The scrollbar belongs to the element itself, every row to an element within.
      onPointerDown: ({ target, currentTarget }: PointerEvent) => {
        if (target === currentTarget) onScroll?.()
      },
    },
    /**
     * Brings a row into view. The virtualizer's own way reads the layout in each of many frames, which took a third of
     * the time of a live list; the rows are equally high, so what it knows already is enough.
     */
    show: useCallback(
      (index: number) => {
        const [from, height] = [rows.scrollOffset ?? 0, rows.scrollRect?.height ?? 0]
        const top = index * rowHeight
        const isBelow = top + rowHeight > from + height
        if (scroller.current && (top < from || isBelow))
          scroller.current.scrollTop = isBelow ? top + rowHeight - height : top
      },
      [rows, rowHeight],
    ),
  }
}
