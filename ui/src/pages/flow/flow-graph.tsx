// The tasks with their dependencies; the path that the duration depends on is marked. Loaded only when it is shown.
import '@xyflow/react/dist/base.css'
import { Controls, type Edge, Handle, type Node, type NodeProps, Position, ReactFlow } from '@xyflow/react'
import { createContext, memo, use, useEffect, useMemo, useState } from 'react'
import { duration, tokens } from '../../parts/figures.ts'
import { Status } from '../../parts/status.tsx'
import classes from './flow-graph.module.css'
import { shownStatus, shownStatuses } from './flow-store.ts'
import { layOut, NODE } from './graph-layout.ts'
import { criticalPath } from './timeline-scale.ts'
import { useFlowStore, useStructure, useTask, useTotals } from './use-flow-store.ts'

interface NodeData extends Record<string, unknown> {
  ids: readonly string[]
}

/** Marks change often and places do not: they reach the nodes another way, so that only marked nodes draw again. */
interface Marks {
  critical: ReadonlySet<string>
  chosen: string | undefined
  onChoose: (id: string) => void
}
const MarksContext = createContext<Marks>({ critical: new Set(), chosen: undefined, onChoose: () => {} })

interface NodeProperties {
  ids: readonly string[]
  isCritical: boolean
  isChosen: boolean
  onChoose: (id: string) => void
}
type TaskNode = Node<NodeData, 'task'>

const PATH_EVERY_MS = 3_000

interface Props {
  chosen: string | undefined
  onChoose: (id: string) => void
}

export const FlowGraph = memo(function FlowGraph({ chosen, onChoose }: Props) {
  const store = useFlowStore()
  const structure = useStructure()
  // biome-ignore lint/correctness/useExhaustiveDependencies: the places depend on the structure alone
  const graph = useMemo(() => layOut([...store.tasks()]), [store, structure])
  const critical = useCriticalPath()
  const nodes = useMemo(
    () =>
      graph.nodes.map(
        ({ id, ids, x, y }): TaskNode => ({
          id,
          type: 'task',
          position: { x, y },
          ...NODE,
          handles: [
            { type: 'target', position: Position.Left, x: 0, y: NODE.height / 2 },
            { type: 'source', position: Position.Right, x: NODE.width, y: NODE.height / 2 },
          ],
          data: { ids },
        }),
      ),
    [graph],
  )
  const marks = useMemo(() => ({ critical, chosen, onChoose }), [critical, chosen, onChoose])
  const edges = useMemo(() => {
    const marked = new Set(graph.nodes.flatMap(({ id, ids }) => (ids.some((each) => critical.has(each)) ? [id] : [])))
    return graph.edges.map(
      ({ from, to }): Edge => ({
        id: `${from}\n${to}`,
        source: from,
        target: to,
        focusable: false,
        className: marked.has(from) && marked.has(to) ? (classes.critical ?? '') : (classes.edge ?? ''),
      }),
    )
  }, [graph, critical])
  return (
    <div className={classes.graph}>
      {graph.leftOut > 0 && (
        <p className={`dim ${classes.note}`}>{graph.leftOut} tasks are not drawn. The table has all of them.</p>
      )}
      <MarksContext value={marks}>
        <ReactFlow<TaskNode>
          nodes={nodes}
          edges={edges}
          nodeTypes={NODE_TYPES}
          nodesDraggable={false}
          nodesConnectable={false}
          nodesFocusable={false}
          edgesFocusable={false}
          elementsSelectable={false}
          onlyRenderVisibleElements
          minZoom={0.05}
          fitView
          fitViewOptions={{ minZoom: 0.5, maxZoom: 1 }}
          aria-label="Graph of the tasks"
        >
          <Controls showInteractive={false} />
        </ReactFlow>
      </MarksContext>
    </div>
  )
})

/** Another path is looked for every few seconds at most. */
function useCriticalPath(): ReadonlySet<string> {
  const store = useFlowStore()
  const [path, setPath] = useState<ReadonlySet<string>>(() => criticalPath(store.tasks()))
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined
    const look = (): void => {
      timer = undefined
      setPath((known) => keepIfSame(known, criticalPath(store.tasks())))
    }
    const stop = store.onTotals(() => {
      timer ??= setTimeout(look, PATH_EVERY_MS)
    })
    return () => {
      stop()
      clearTimeout(timer)
    }
  }, [store])
  return path
}

const keepIfSame = (known: ReadonlySet<string>, next: ReadonlySet<string>): ReadonlySet<string> =>
  known.size === next.size && [...next].every((id) => known.has(id)) ? known : next

const NODE_TYPES = { task: memo(NodeView) }

function NodeView({ data: { ids } }: NodeProps<TaskNode>) {
  const { critical, chosen, onChoose } = use(MarksContext)
  const [first = ''] = ids
  const properties = {
    ids,
    isCritical: ids.some((id) => critical.has(id)),
    isChosen: chosen !== undefined && ids.includes(chosen),
    onChoose,
  }
  return (
    <>
      <Handle type="target" position={Position.Left} className={classes.handle ?? ''} isConnectable={false} />
      {ids.length > 1 ? <ManyTasks {...properties} /> : <OneTask id={first} {...properties} />}
      <Handle type="source" position={Position.Right} className={classes.handle ?? ''} isConnectable={false} />
    </>
  )
}

const OneTask = memo(function OneTask({ id, isCritical, isChosen, onChoose }: NodeProperties & { id: string }) {
  const task = useTask(id)
  if (!task) return null
  const status = shownStatus(task)
  const took = task.start_at && task.end_at ? duration(Date.parse(task.end_at) - Date.parse(task.start_at)) : status
  return (
    <button
      type="button"
      className={`nopan ${classes.node}`}
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

/** One node for many tasks, with how they stand. */
const ManyTasks = memo(function ManyTasks({ ids, isCritical, isChosen, onChoose }: NodeProperties) {
  const store = useFlowStore()
  useTotals()
  const counts = new Map<string, number>()
  for (const id of ids) {
    const task = store.task(id)
    if (task) counts.set(shownStatus(task), (counts.get(shownStatus(task)) ?? 0) + 1)
  }
  const status = (['failed', 'blocked', 'running', 'pending', 'completed'] as const).find((each) => counts.has(each))
  const [first = ''] = ids
  return (
    <button
      type="button"
      className={`nopan ${classes.node}`}
      data-status={status}
      data-critical={isCritical || undefined}
      aria-current={isChosen ? 'true' : undefined}
      onClick={() => onChoose(first)}
    >
      <span className="cut">
        {ids.length} × {store.task(first)?.name}
      </span>
      <span className={`dim number cut ${classes.line}`}>
        {shownStatuses.flatMap((each) => (counts.has(each) ? [`${counts.get(each)} ${each}`] : [])).join(', ')}
      </span>
    </button>
  )
})
