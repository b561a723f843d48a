// The tasks over time. Bars of running tasks stretch by one CSS variable; a row draws itself only when its task changed.
import { Button, SegmentedControl } from '@mantine/core'
import { ChevronDown, ChevronRight } from 'lucide-react'
import { memo, type RefObject, useCallback, useEffect, useMemo, useRef, useState } from 'react'
import type { FlowRun } from '../../../../src/kernel/flow-run.ts'
import { serverNow } from '../../api/client.ts'
import { duration } from '../../parts/figures.ts'
import { Status } from '../../parts/status.tsx'
import { useSteadyOrder } from '../../parts/steady-order.ts'
import { useVirtualRows } from '../../parts/use-virtual-rows.ts'
import { Elapsed, useNow } from '../../parts/when.tsx'
import { BusyRow } from './busy-row.tsx'
import { type FlowStore, shownStatus } from './flow-store.ts'
import classes from './timeline.module.css'
import { beginOf, groupRows, spanOf, type TimelineRow, ticksOf } from './timeline-scale.ts'
import { useFlowStore, useTask, useTotals } from './use-flow-store.ts'

const ROW = 26
const STRETCH_EVERY_MS = 200
const WINDOWS = { All: null, '2m': 120_000, '30s': 30_000 } as const
type Window = keyof typeof WINDOWS

interface Props {
  run: FlowRun
  ids: readonly string[]
  chosen: string | undefined
  onChoose: (id: string) => void
}

export function Timeline({ run, ids, chosen, onChoose }: Props) {
  const store = useFlowStore()
  const [window, setWindow] = useState<Window>('All')
  const [closed, setClosed] = useState<ReadonlySet<string>>(new Set())
  const { order, hold } = useSteadyOrder(ids)
  const rows = useMemo(
    () => groupRows(order, (id) => store.task(id)?.parent_id ?? null, closed),
    [store, order, closed],
  )
  const root = useRef<HTMLDivElement>(null)
  const isLive = run.completed_at === null
  const [isFollowing, setIsFollowing] = useState(true)
  const { items, before, after, scroll, show } = useVirtualRows({
    count: rows.length,
    rowHeight: ROW,
    keyOf: useCallback((index: number) => `${rows[index]?.type} ${rows[index]?.id}`, [rows]),
    onScroll: () => setIsFollowing(false),
  })
  useFollowing(store, rows, isFollowing && isLive ? show : null)
  useStretch(root, run, WINDOWS[window])
  const toggle = (id: string): void =>
    setClosed((known) => (known.has(id) ? new Set([...known].filter((each) => each !== id)) : new Set([...known, id])))
  return (
    <div ref={root} className={classes.timeline}>
      <div className={classes.head}>
        <div className={classes.controls}>
          <SegmentedControl
            size="xs"
            aria-label="Time shown"
            data={Object.keys(WINDOWS)}
            value={window}
            onChange={(value) => setWindow(value as Window)} // one of the keys above
          />
          {isLive && (
            <Button
              size="compact-xs"
              variant={isFollowing ? 'light' : 'default'}
              aria-pressed={isFollowing}
              onClick={() => setIsFollowing(!isFollowing)}
            >
              Following
            </Button>
          )}
        </div>
        <Axis run={run} windowMs={WINDOWS[window]} />
      </div>
      <BusyRow run={run} windowMs={WINDOWS[window]} />
      <div {...scroll} className={classes.rows}>
        <ul
          className={classes.list}
          aria-label="Timeline"
          style={{ paddingTop: before, paddingBottom: after }}
          {...hold}
        >
          {items.map(({ index, key }) => {
            const row = rows[index]
            if (!row) return null
            return (
              <li key={key}>
                {row.type === 'group' ? (
                  <GroupRow id={row.id} ids={row.ids} isClosed={closed.has(row.id)} onToggle={toggle} />
                ) : (
                  <Bar id={row.id} startedAt={beginOf(run)} isChosen={row.id === chosen} onChoose={onChoose} />
                )}
              </li>
            )
          })}
        </ul>
      </div>
    </div>
  )
}

/** Sets the variables that place every bar. */
function useStretch(root: RefObject<HTMLDivElement | null>, run: FlowRun, windowMs: number | null): void {
  useEffect(() => {
    const stretch = (): void => {
      const { from, to } = spanOf(run, windowMs, serverNow())
      const begin = beginOf(run)
      const style = root.current?.style
      style?.setProperty('--from', String(from - begin))
      style?.setProperty('--span', String(to - from))
      style?.setProperty('--now', String(to - begin))
    }
    stretch()
    if (run.completed_at !== null) return
    const timer = setInterval(stretch, STRETCH_EVERY_MS)
    return () => clearInterval(timer)
  }, [root, run, windowMs])
}

/** Keeps the task that began last in view while `show` is given. */
function useFollowing(store: FlowStore, rows: readonly TimelineRow[], show: ((index: number) => void) | null): void {
  useEffect(() => {
    if (show === null) return
    let shown = -1
    const showLast = (): void => {
      let [last, lastStart] = [-1, '']
      for (const [index, { type, id }] of rows.entries()) {
        const start = (type === 'task' && store.task(id)?.start_at) || ''
        if (start > lastStart) [last, lastStart] = [index, start]
      }
      if (last >= 0 && last !== shown) show(last)
      shown = last
    }
    showLast()
    return store.onTotals(showLast)
  }, [store, rows, show])
}

/** The part of the axis that the word takes. */
const SHARE_OF_NOW = 0.15

function Axis({ run, windowMs }: { run: FlowRun; windowMs: number | null }) {
  const now = useNow()
  const begin = beginOf(run)
  const isLive = run.completed_at === null
  const span = spanOf(run, windowMs, now)
  /** A tick whose words would lie below "now" is left out. */
  const last = isLive ? span.to - (span.to - span.from) * SHARE_OF_NOW : span.to
  const ticks = ticksOf(span, begin).filter((tick) => begin + tick <= last)
  return (
    <div className={classes.axis} aria-hidden>
      {ticks.map((tick) => (
        <span key={tick} className={classes.tick} style={{ '--s': tick } as React.CSSProperties}>
          {duration(tick)}
        </span>
      ))}
      {isLive && <span className={classes.now}>now</span>}
    </div>
  )
}

interface BarProps {
  id: string
  startedAt: number
  isChosen: boolean
  onChoose: (id: string) => void
}

const Bar = memo(function Bar({ id, startedAt, isChosen, onChoose }: BarProps) {
  const task = useTask(id)
  if (!task) return null
  const status = shownStatus(task)
  const start = task.start_at === null ? null : Date.parse(task.start_at)
  const end = task.end_at === null ? null : Date.parse(task.end_at)
  return (
    <button
      type="button"
      className={classes.row}
      data-task={id}
      data-status={status}
      aria-current={isChosen ? 'true' : undefined}
      onClick={() => onChoose(id)}
    >
      <span className={classes.what}>
        <span className={classes.icon}>
          <Status of={status} />
        </span>
        <span className={`cut ${classes.name}`} title={task.name}>
          {task.name}
        </span>
        <span className={`cut dim ${classes.worker}`}>{task.worker}</span>
        <span className="dim">
          {start !== null && <Elapsed from={task.start_at} ms={end === null ? null : end - start} />}
        </span>
      </span>
      <span className={classes.track}>
        {start !== null && (
          <span
            className={classes.bar}
            style={
              { '--s': start - startedAt, ...(end === null ? {} : { '--e': end - startedAt }) } as React.CSSProperties
            }
          />
        )}
      </span>
    </button>
  )
})

interface GroupProps {
  id: string
  ids: readonly string[]
  isClosed: boolean
  onToggle: (id: string) => void
}

function GroupRow({ id, ids, isClosed, onToggle }: GroupProps) {
  const store = useFlowStore()
  useTotals()
  const done = ids.filter((each) => store.task(each)?.status === 'completed').length
  const Icon = isClosed ? ChevronRight : ChevronDown
  return (
    <button type="button" className={classes.group} aria-expanded={!isClosed} onClick={() => onToggle(id)}>
      <span className={classes.what}>
        <Icon size={13} aria-hidden />
        <span className={`cut ${classes.name}`}>{id || 'Others'}</span>
        <span className="dim number">
          {done}/{ids.length}
        </span>
      </span>
      <span className={classes.track} />
    </button>
  )
}
