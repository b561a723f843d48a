// The tree of the flow. One element has the focus, and the chosen row is its active descendant.
import { useVirtualizer } from '@tanstack/react-virtual'
import {
  Bot,
  ChevronDown,
  ChevronRight,
  CircleAlert,
  Columns3,
  Crown,
  Filter,
  GitFork,
  GitMerge,
  ListOrdered,
  type LucideIcon,
  RefreshCw,
  Shuffle,
  SquareFunction,
} from 'lucide-react'
import { type KeyboardEvent, useEffect, useMemo, useRef, useState } from 'react'
import classes from './editor.module.css'
import { isNode, kindOf, placeOf, type Row, rowsOf, titleOf } from './tree.ts'
import { duplicateNode, moveIn, moveNode, moveOut, removeNode } from './tree-edits.ts'
import { commandOf, type TreeCommand } from './tree-keys.ts'
import { TreeToolbar } from './tree-toolbar.tsx'
import type { Editor } from './use-editor.ts'

const ROW_PX = 28
const ICONS: Readonly<Record<string, LucideIcon>> = {
  sequential: ListOrdered,
  parallel: Columns3,
  loop: RefreshCw,
  map_reduce: GitMerge,
  pipeline: Filter,
  fork_join: GitFork,
  hierarchical: Crown,
  adaptive: Shuffle,
}

export function TreePanel({ editor, onEdit }: { editor: Editor; onEdit: () => void }) {
  const { root, selected } = editor
  const [folded, setFolded] = useState<ReadonlySet<string>>(new Set())
  const rows = useMemo(() => rowsOf(root, folded), [root, folded])
  const box = useRef<HTMLDivElement>(null)
  const virtual = useVirtualizer({
    count: rows.length,
    estimateSize: () => ROW_PX,
    getScrollElement: () => box.current,
    overscan: 10,
  })
  const index = rows.findIndex(({ path }) => path === selected)
  useEffect(() => {
    if (index >= 0) virtual.scrollToIndex(index)
  }, [index, virtual])
  // A node that is chosen elsewhere may lie in a folded one.
  useEffect(() => {
    setFolded((known) => {
      const around = foldedAround(selected, known)
      return around.length === 0 ? known : new Set([...known].filter((path) => !around.includes(path)))
    })
  }, [selected])
  const fold = (path: string, isFolded: boolean): void =>
    setFolded((known) => new Set(isFolded ? [...known, path] : [...known].filter((each) => each !== path)))
  const press = (event: KeyboardEvent): void => {
    const command = commandOf(event, rows, selected)
    if (!command) return
    event.preventDefault()
    if (command.type === 'fold') fold(command.path, command.isFolded)
    else if (command.type === 'edit') onEdit()
    else run(editor, command)
  }
  const items = virtual.getVirtualItems()
  const isShown = items.some((item) => item.index === index)
  return (
    <section className={classes.treePanel} aria-label="Nodes">
      <TreeToolbar editor={editor} />
      {/* The rows are reached by the arrow keys, as aria-activedescendant tells. */}
      <div
        ref={box}
        className={classes.tree}
        role="tree"
        tabIndex={0}
        aria-label="Nodes of the flow"
        aria-activedescendant={isShown ? rowId(selected) : undefined}
        aria-describedby="tree-keys"
        onKeyDown={press}
      >
        <div role="presentation" style={{ height: virtual.getTotalSize(), position: 'relative' }}>
          {items.map((item) => {
            const row = rows[item.index]
            return row ? <TreeRow key={row.path} row={row} top={item.start} editor={editor} onFold={fold} /> : null
          })}
        </div>
      </div>
      <p id="tree-keys" className={classes.keys}>
        Arrows choose, Enter edits, Alt + arrows move, Ctrl + D duplicates, Delete removes.
      </p>
    </section>
  )
}

const rowId = (path: string): string => `node-${path.replaceAll(/[^\w-]/g, '_')}`

function foldedAround(path: string, folded: ReadonlySet<string>): string[] {
  const place = placeOf(path)
  if (!place) return []
  return [...(folded.has(place.parent) ? [place.parent] : []), ...foldedAround(place.parent, folded)]
}

function run(editor: Editor, command: Exclude<TreeCommand, { type: 'fold' | 'edit' }>): void {
  const { root, selected, dispatch, apply } = editor
  switch (command.type) {
    case 'select':
      dispatch(command)
      break
    case 'up':
      apply(moveNode(root, selected, -1))
      break
    case 'down':
      apply(moveNode(root, selected, 1))
      break
    case 'out':
      apply(moveOut(root, selected))
      break
    case 'in':
      apply(moveIn(root, selected))
      break
    case 'duplicate':
      apply(duplicateNode(root, selected))
      break
    case 'remove':
      apply(removeNode(root, selected))
      break
  }
}

interface RowProps {
  row: Row
  top: number
  editor: Editor
  onFold: (path: string, isFolded: boolean) => void
}

function TreeRow({ row, top, editor, onFold }: RowProps) {
  const { path, value, depth, slot, position, siblings, hasChildren, isFolded } = row
  const count = editor.problems.filter(({ node }) => node === path).length
  const Icon = iconOf(value)
  const Chevron = isFolded ? ChevronRight : ChevronDown
  const isSingle = slot && (slot.kind === 'node' || slot.kind === 'work')
  return (
    // biome-ignore lint/a11y/useFocusableInteractive: the tree has the focus, and this row is its active descendant
    // biome-ignore lint/a11y/useKeyWithClickEvents: the keys are handled by the tree
    <div
      id={rowId(path)}
      role="treeitem"
      aria-level={depth + 1}
      aria-posinset={position}
      aria-setsize={siblings}
      aria-selected={path === editor.selected}
      aria-expanded={hasChildren ? !isFolded : undefined}
      className={classes.row}
      style={{ transform: `translateY(${top}px)`, paddingLeft: 6 + Math.min(depth, 12) * 16 }}
      onClick={() => editor.dispatch({ type: 'select', path })}
    >
      <span
        className={classes.fold}
        aria-hidden
        onClick={(event) => {
          if (!hasChildren) return
          event.stopPropagation()
          onFold(path, !isFolded)
        }}
      >
        {hasChildren && <Chevron size={12} />}
      </span>
      <Icon size={14} aria-hidden className={classes.icon} />
      {isSingle && <span className="dim">{slot.label.toLowerCase()}</span>}
      <span className="cut">{titleOf(value)}</span>
      <span className={`dim cut ${classes.kind}`}>{kindOf(value)}</span>
      {count > 0 && (
        <span className={classes.wrong}>
          <CircleAlert size={13} aria-hidden />
          <span className="visually-hidden">{count === 1 ? '1 problem' : `${count} problems`}</span>
        </span>
      )}
    </div>
  )
}

function iconOf(value: unknown): LucideIcon {
  if (typeof value === 'string') return SquareFunction
  if (!isNode(value)) return CircleAlert
  if (value.type === 'task') return 'agent' in value ? Bot : SquareFunction
  return ICONS[String(value.type)] ?? CircleAlert
}
