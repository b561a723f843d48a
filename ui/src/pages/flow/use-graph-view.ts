// Which groups of the graph are open, and the part of it that is in sight: the chosen task stays there.
import { getViewportForBounds, useReactFlow, useStoreApi } from '@xyflow/react'
import { type KeyboardEvent, useCallback, useEffect, useMemo, useRef, useState } from 'react'
import type { TaskRow } from './flow-store.ts'
import { allGroups, FEW_BOXES, foldTasks, groupsAround } from './graph-groups.ts'
import { type Box, type Direction, layOut, middleOf, nearest } from './graph-layout.ts'
import { useFlowStore, useStructure } from './use-flow-store.ts'

/** At this zoom the words in a box can be read. */
const READABLE = 0.6
/** Boxes can still be told from each other, and colours seen. */
const OVERVIEW = 0.3
/** Between the edge of the view and the first box, in pixels. The buttons of the view stand above. */
const MARGIN = 24
export const FIT = { minZoom: 0.02, maxZoom: 1, padding: 0.06 }
/** Opening all groups of a larger flow would draw more boxes than a browser moves smoothly. */
const MOST_OPENED = 600

export function useGraphView(chosen: string | undefined) {
  const store = useFlowStore()
  const structure = useStructure()
  // biome-ignore lint/correctness/useExhaustiveDependencies: the groups depend on the structure alone
  const folded = useMemo(() => foldedFrom([...store.tasks()]), [store, structure])
  const [toggled, setToggled] = useState<ReadonlyMap<string, boolean>>(new Map())
  const isOpen = useCallback((id: string) => toggled.get(id) ?? folded.isFew, [toggled, folded])
  const graph = useMemo(() => layOut(folded.units, folded.tasks, isOpen), [folded, isOpen])
  const set = (ids: readonly string[], isOpenNow: boolean): void =>
    setToggled((known) => new Map([...known, ...ids.map((id) => [id, isOpenNow] as const)]))
  const around = chosen === undefined ? undefined : folded.around.get(chosen)
  const aroundKey = around?.join('\n')
  // biome-ignore lint/correctness/useExhaustiveDependencies: the groups are the same while their ids are
  useEffect(() => {
    if (around && around.length > 0) set(around, true)
  }, [chosen, aroundKey])
  return {
    graph,
    all: folded.tasks.length,
    hasGroups: folded.groups.length > 0,
    isAllOpen: folded.groups.every(isOpen),
    isAnyOpen: folded.groups.some(isOpen),
    mayOpenAll: folded.tasks.length <= MOST_OPENED,
    toggle: (id: string) => set([id], !isOpen(id)),
    setAll: (isOpenNow: boolean) => set(folded.groups, isOpenNow),
  }
}

function foldedFrom(tasks: readonly TaskRow[]) {
  const units = foldTasks(tasks)
  return { tasks, units, groups: allGroups(units), around: groupsAround(units), isFew: tasks.length <= FEW_BOXES }
}

/** Moves the graph: to the chosen task, to a group that was opened or folded, and box by box with the arrow keys. */
export function useSight(boxes: readonly Box[], chosen: string | undefined) {
  const flow = useReactFlow()
  const state = useStoreApi()
  const root = useRef<HTMLDivElement>(null)
  const clicked = useRef<string | undefined>(undefined)
  const wanted = useRef<{ unit: string | null } | null>(null)
  const [isReady, setIsReady] = useState(false)

  const isInSight = (box: Box): boolean => {
    const { width, height, transform } = state.getState()
    const [left, top, zoom] = transform
    const [x, y] = [box.x * zoom + left, box.y * zoom + top]
    return x >= 0 && y >= 0 && x + box.width * zoom <= width && y + box.height * zoom <= height
  }
  const show = (box: Box): void => {
    const zoom = flow.getZoom()
    if (isInSight(box) && zoom >= READABLE) return
    const { x, y } = middleOf(box)
    void flow.setCenter(x, y, { zoom: Math.max(READABLE, zoom) })
  }
  const lookAt = (bounds: Rectangle): void => {
    const { width, height } = state.getState()
    void flow.setViewport(getViewportForBounds(bounds, width, height, FIT.minZoom, FIT.maxZoom, FIT.padding))
  }
  /** All of it, unless it would be a mere strip; then its beginning. */
  const begin = (bounds: Rectangle): void => {
    const { width, height } = state.getState()
    const whole = getViewportForBounds(bounds, width, height, FIT.minZoom, FIT.maxZoom, FIT.padding)
    if (whole.zoom >= OVERVIEW) return void flow.setViewport(whole)
    const [spareX, spareY] = [width - bounds.width * READABLE, height - bounds.height * READABLE]
    void flow.setViewport({
      x: Math.max(MARGIN, spareX / 2) - bounds.x * READABLE,
      y: Math.max(MARGIN, spareY / 2) - bounds.y * READABLE,
      zoom: READABLE,
    })
  }
  const focus = (id: string): void => {
    // The box may have to be drawn first.
    requestAnimationFrame(() =>
      requestAnimationFrame(() => root.current?.querySelector<HTMLElement>(`[data-unit="${CSS.escape(id)}"]`)?.focus()),
    )
  }

  const box = chosen === undefined ? undefined : boxes.find(({ unit }) => unit.id === chosen)
  // biome-ignore lint/correctness/useExhaustiveDependencies: only another task, or another place of it, moves the graph
  useEffect(() => {
    if (!isReady || !box) return
    if (clicked.current !== chosen || !isInSight(box)) show(box)
  }, [isReady, chosen, box?.x, box?.y])

  // biome-ignore lint/correctness/useExhaustiveDependencies: only other boxes can hold what was opened or folded
  useEffect(() => {
    const what = wanted.current
    wanted.current = null
    if (!what) return
    if (what.unit === null) return lookAt(boundsOf(boxes))
    const changed = boxes.find(({ unit }) => unit.id === what.unit)
    if (!changed) return
    if (changed.isOpen) lookAt(changed)
    else show(changed)
    focus(what.unit)
  }, [boxes])

  const onKeyDown = (event: KeyboardEvent): void => {
    const direction = DIRECTIONS.find((each) => each === event.key)
    const id = (event.target as HTMLElement).dataset.unit // keys go to elements of the page
    const from = boxes.find(({ unit }) => unit.id === id)
    const next = direction && from && nearest(boxes, from, direction)
    if (!next) return
    event.preventDefault()
    if (!isInSight(next)) show(next)
    focus(next.unit.id)
  }
  return {
    root,
    onKeyDown,
    onInit: () => {
      begin(boundsOf(boxes))
      setIsReady(true)
    },
    noteClick: (id: string) => {
      clicked.current = id
    },
    /** The next boxes are looked at: all of them, or those of this group. */
    want: (unit: string | null) => {
      wanted.current = { unit }
    },
  }
}

type Rectangle = Pick<Box, 'x' | 'y' | 'width' | 'height'>

function boundsOf(boxes: readonly Box[]): Rectangle {
  let [left, top, right, bottom] = [0, 0, 0, 0]
  for (const { x, y, width, height } of boxes) {
    ;[left, top] = [Math.min(left, x), Math.min(top, y)]
    ;[right, bottom] = [Math.max(right, x + width), Math.max(bottom, y + height)]
  }
  return { x: left, y: top, width: right - left, height: bottom - top }
}

const DIRECTIONS: readonly Direction[] = ['ArrowLeft', 'ArrowRight', 'ArrowUp', 'ArrowDown']
