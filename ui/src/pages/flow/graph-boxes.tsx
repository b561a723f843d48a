// The boxes of the graph: a task, a folded group with how its tasks stand, and the frame of an open group.
import { Handle, type Node, type NodeProps, Position } from '@xyflow/react'
import { ChevronDown, ChevronRight } from 'lucide-react'
import { createContext, memo, use } from 'react'
import { duration, tokens } from '../../parts/figures.ts'
import { Status } from '../../parts/status.tsx'
import classes from './flow-graph.module.css'
import { type FlowStore, type ShownStatus, shownStatus } from './flow-store.ts'
import type { Unit } from './graph-groups.ts'
import { useFlowStore, useTask, useTotals } from './use-flow-store.ts'

export interface NodeData extends Record<string, unknown> {
  unit: Unit
  isOpen: boolean
}
export type UnitNode = Node<NodeData, 'unit'>

/** Marks change often and places do not: they reach the boxes another way, so that only marked boxes draw again. */
export interface Marks {
  critical: ReadonlySet<string>
  chosen: string | undefined
  onChoose: (id: string) => void
  onToggle: (id: string) => void
}
export const MarksContext = createContext<Marks>({
  critical: new Set(),
  chosen: undefined,
  onChoose: () => {},
  onToggle: () => {},
})

interface BoxProps {
  unit: Unit
  isCritical: boolean
  isChosen: boolean
}

function NodeView({ data: { unit, isOpen } }: NodeProps<UnitNode>) {
  const { critical, chosen, onChoose, onToggle } = use(MarksContext)
  const properties = {
    unit,
    isCritical: unit.ids.some((id) => critical.has(id)),
    isChosen: chosen !== undefined && unit.ids.includes(chosen),
  }
  return (
    <>
      <Handle type="target" position={Position.Left} className={classes.handle ?? ''} isConnectable={false} />
      {unit.kind === 'task' ? (
        <OneTask {...properties} onChoose={onChoose} />
      ) : (
        <Group {...properties} isOpen={isOpen} onToggle={onToggle} />
      )}
      <Handle type="source" position={Position.Right} className={classes.handle ?? ''} isConnectable={false} />
    </>
  )
}

export const NODE_TYPES = { unit: memo(NodeView) }

type TaskProps = BoxProps & { onChoose: (id: string) => void }

const OneTask = memo(function OneTask({ unit: { id }, isCritical, isChosen, onChoose }: TaskProps) {
  const task = useTask(id)
  if (!task) return null
  const status = shownStatus(task)
  const took = task.start_at && task.end_at ? duration(Date.parse(task.end_at) - Date.parse(task.start_at)) : status
  return (
    <button
      type="button"
      className={`nopan ${classes.node}`}
      data-unit={id}
      data-task={id}
      data-status={status}
      data-critical={isCritical || undefined}
      aria-current={isChosen ? 'true' : undefined}
      onClick={() => onChoose(id)}
    >
      <span className={classes.line}>
        <span className={classes.icon}>
          <Status of={status} size={11} />
        </span>
        <span className="cut">{task.name}</span>
      </span>
      <span className={`dim ${classes.line}`}>
        <span className="cut">{task.worker}</span>
        <span className={`number ${classes.right}`}>
          {took}
          {task.usage && ` · ${tokens(task.usage.total_tokens)}`}
        </span>
      </span>
    </button>
  )
})

/** The states that somebody looks for come first. */
const BY_WEIGHT: readonly ShownStatus[] = ['failed', 'blocked', 'running', 'pending', 'completed', 'skipped']

type GroupProps = BoxProps & { isOpen: boolean; onToggle: (id: string) => void }

const Group = memo(function Group({ unit, isOpen, isCritical, isChosen, onToggle }: GroupProps) {
  const store = useFlowStore()
  useTotals()
  const counts = new Map<ShownStatus, number>()
  for (const id of unit.ids) {
    const task = store.task(id)
    if (task) counts.set(shownStatus(task), (counts.get(shownStatus(task)) ?? 0) + 1)
  }
  const present = BY_WEIGHT.filter((each) => counts.has(each))
  const Chevron = isOpen ? ChevronDown : ChevronRight
  const words = (
    <>
      <span className={classes.line}>
        <Chevron size={13} aria-hidden />
        <span className="visually-hidden">{isOpen ? 'Fold' : 'Open'} </span>
        <strong>{sizeOf(unit)}</strong>
        <span className="cut dim">{namesOf(unit, store)}</span>
      </span>
      <span className={`number ${isOpen ? 'cut' : classes.states}`}>
        {present.map((each) => `${counts.get(each)} ${each}`).join(', ')}
      </span>
    </>
  )
  const head = {
    type: 'button',
    'data-unit': unit.id,
    'data-status': present[0],
    'data-critical': isCritical || undefined,
    'aria-expanded': isOpen,
    onClick: () => onToggle(unit.id),
  } as const
  if (isOpen) {
    return (
      <div className={classes.frame}>
        <button {...head} className={`nopan ${classes.head}`}>
          {words}
        </button>
      </div>
    )
  }
  return (
    <button {...head} className={`nopan ${classes.node} ${classes.group}`} aria-current={isChosen ? 'true' : undefined}>
      {words}
      <span className={classes.shares} aria-hidden>
        {present.map((each) => (
          <span key={each} data-status={each} style={{ flexGrow: counts.get(each) }} />
        ))}
      </span>
    </button>
  )
})

const sizeOf = ({ kind, ids }: Unit): string => `${ids.length} tasks${kind === 'in turn' ? ' in turn' : ''}`

/** "Gardener" if all are called so, else "task_0 … task_499". */
function namesOf({ ids }: Unit, store: FlowStore): string {
  const [first = '', last = ''] = [ids[0], ids.at(-1)].map((id) => (id && store.task(id)?.name) ?? id ?? '')
  return first === last ? first : `${first} … ${last}`
}
