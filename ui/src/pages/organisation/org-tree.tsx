// The tree of agents by senior. Only the rows on the screen are drawn.
import { TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useVirtualizer } from '@tanstack/react-virtual'
import { ChevronDown, ChevronRight, Search } from 'lucide-react'
import { type KeyboardEvent, useRef, useState } from 'react'
import type { OrgAgent } from '../../../../src/kernel/org.ts'
import { inHandQuery } from '../../api/organisation.ts'
import { BudgetBar } from '../../parts/budget-bar.tsx'
import { showMarks } from '../../parts/property-diff.ts'
import { Status } from '../../parts/status.tsx'
import { type OrgRow, orgRows } from './org-rows.ts'
import classes from './organisation.module.css'

const ROW = 34

interface Props {
  projectId: string
  tree: OrgAgent[]
  chosen: string | undefined
  onChoose: (agentId: string) => void
}

export function OrgTree({ projectId, tree, chosen, onChoose }: Props) {
  const [find, setFind] = useState('')
  const [choices, setChoices] = useState<ReadonlyMap<string, boolean>>(new Map())
  const { data: inHand = [] } = useQuery(inHandQuery(projectId))
  const atWork = Map.groupBy(inHand, ({ assigned_to }) => assigned_to)
  const rows = orgRows(tree, { choices, chosen, find })
  const fold = (id: string, isOpen: boolean): void => setChoices((now) => new Map(now).set(id, isOpen))
  return (
    <div className={classes.tree}>
      <TextInput
        aria-label="Find an agent"
        placeholder="Find by name, role, status or competency"
        size="xs"
        leftSection={<Search size={13} aria-hidden />}
        value={find}
        onChange={(event) => setFind(event.currentTarget.value)}
      />
      <div className={classes.header} aria-hidden>
        <span>Agent</span>
        <span>Status</span>
        <span>At work</span>
        <span>Queue</span>
        <span>Budget</span>
      </div>
      {rows.length === 0 && <p className="dim">No agent matches.</p>}
      {rows.length > 0 && (
        <Rows
          rows={rows}
          chosen={chosen}
          onChoose={onChoose}
          onFold={fold}
          atWork={(id) => atWork.get(id)?.length ?? 0}
        />
      )}
    </div>
  )
}

interface RowsProps {
  rows: readonly OrgRow[]
  chosen: string | undefined
  onChoose: (agentId: string) => void
  onFold: (agentId: string, isOpen: boolean) => void
  atWork: (agentId: string) => number
}

function Rows({ rows, chosen, onChoose, onFold, atWork }: RowsProps) {
  const scroller = useRef<HTMLDivElement>(null)
  const [pointed, setPointed] = useState<string | null>(null)
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW,
    getItemKey: (index) => rows[index]?.agent.id ?? index,
    overscan: 12,
  })
  const at = Math.max(
    0,
    rows.findIndex(({ agent }) => agent.id === (pointed ?? chosen)),
  )
  const point = (index: number): void => {
    const row = rows[Math.max(0, Math.min(rows.length - 1, index))]
    if (!row) return
    setPointed(row.agent.id)
    virtual.scrollToIndex(rows.indexOf(row))
  }
  const onKeyDown = (event: KeyboardEvent): void => {
    const work = keyWork(event.key, rows, at, { point, onFold, onChoose })
    if (!work) return
    event.preventDefault()
    work()
  }
  return (
    <div
      ref={scroller}
      role="tree"
      aria-label="Agents by senior"
      // The rows are drawn only while they are on the screen, so the tree itself has the focus.
      tabIndex={0}
      aria-activedescendant={`agent-${rows[at]?.agent.id}`}
      className={classes.rows}
      onKeyDown={onKeyDown}
    >
      <div style={{ height: virtual.getTotalSize(), position: 'relative' }}>
        {virtual.getVirtualItems().map(({ index, start }) => {
          const row = rows[index]
          return row ? (
            <Row
              key={row.agent.id}
              row={row}
              start={start}
              isChosen={row.agent.id === chosen}
              isPointed={index === at}
              atWork={atWork(row.agent.id)}
              onChoose={() => {
                setPointed(row.agent.id)
                onChoose(row.agent.id)
              }}
              onFold={() => onFold(row.agent.id, row.isOpen === false)}
            />
          ) : null
        })}
      </div>
    </div>
  )
}

interface Works {
  point: (index: number) => void
  onFold: (agentId: string, isOpen: boolean) => void
  onChoose: (agentId: string) => void
}

/** The keys of a tree: up and down move, right unfolds, left folds or goes to the senior, Enter chooses. */
function keyWork(key: string, rows: readonly OrgRow[], at: number, works: Works): (() => void) | null {
  const row = rows[at]
  if (!row) return null
  const senior = rows.findLastIndex(({ level }, index) => index < at && level < row.level)
  switch (key) {
    case 'ArrowDown':
      return () => works.point(at + 1)
    case 'ArrowUp':
      return () => works.point(at - 1)
    case 'Home':
      return () => works.point(0)
    case 'End':
      return () => works.point(rows.length - 1)
    case 'ArrowRight':
      return row.isOpen === false ? () => works.onFold(row.agent.id, true) : () => works.point(at + 1)
    case 'ArrowLeft':
      return row.isOpen === true ? () => works.onFold(row.agent.id, false) : () => works.point(senior)
    case 'Enter':
    case ' ':
      return () => works.onChoose(row.agent.id)
    default:
      return null
  }
}

interface RowProps {
  row: OrgRow
  start: number
  isChosen: boolean
  isPointed: boolean
  atWork: number
  onChoose: () => void
  onFold: () => void
}

function Row({ row, start, isChosen, isPointed, atWork, onChoose, onFold }: RowProps) {
  const { agent, level, place, among, isOpen } = row
  const Chevron = isOpen ? ChevronDown : ChevronRight
  return (
    // biome-ignore lint/a11y/useFocusableInteractive: the tree has the focus and points at this row
    // biome-ignore lint/a11y/useKeyWithClickEvents: the keys are those of the tree
    <div
      id={`agent-${agent.id}`}
      role="treeitem"
      aria-level={level}
      aria-posinset={place}
      aria-setsize={among}
      aria-selected={isChosen}
      {...(isOpen === null ? {} : { 'aria-expanded': isOpen })}
      className={classes.row}
      data-pointed={isPointed || undefined}
      style={{ transform: `translateY(${start}px)`, height: ROW }}
      onClick={onChoose}
    >
      <span className={classes.name} style={{ paddingLeft: (level - 1) * 16 }}>
        {isOpen === null ? (
          <span className={classes.leaf} />
        ) : (
          // biome-ignore lint/a11y/noStaticElementInteractions: the arrow keys of the tree do the same
          // biome-ignore lint/a11y/useKeyWithClickEvents: the arrow keys of the tree do the same
          <span
            className={classes.fold}
            title={isOpen ? 'Fold' : 'Unfold'}
            onClick={(event) => {
              event.stopPropagation()
              onFold()
            }}
          >
            <Chevron size={14} aria-hidden />
          </span>
        )}
        <span className="cut">
          {showMarks(agent.name)} <span className="dim">{showMarks(agent.role)}</span>
        </span>
      </span>
      <Status of={agent.status} {...(agent.paused_for && { title: agent.paused_for })} />
      <span className="number">
        {atWork}
        <span className="visually-hidden"> at work</span>
      </span>
      <span className="number">
        {Math.max(0, agent.load - atWork)}
        <span className="visually-hidden"> in its queue</span>
      </span>
      <BudgetBar used={agent.token_used} of={agent.token_allocation} isBare />
    </div>
  )
}
