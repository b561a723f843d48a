// The tasks with their dependencies; the path that the duration depends on is marked. Loaded only when it is shown.
import '@xyflow/react/dist/base.css'
import { Controls, type Edge, Position, ReactFlow, ReactFlowProvider } from '@xyflow/react'
import { memo, useEffect, useMemo, useRef, useState } from 'react'
import classes from './flow-graph.module.css'
import { type Marks, MarksContext, NODE_TYPES, type UnitNode } from './graph-boxes.tsx'
import type { Graph } from './graph-layout.ts'
import { criticalPath } from './timeline-scale.ts'
import { useFlowStore } from './use-flow-store.ts'
import { FIT, useGraphView, useSight } from './use-graph-view.ts'

const PATH_EVERY_MS = 3_000

interface Props {
  chosen: string | undefined
  onChoose: (id: string) => void
}

export const FlowGraph = memo(function FlowGraph(props: Props) {
  return (
    <ReactFlowProvider>
      <Content {...props} />
    </ReactFlowProvider>
  )
})

function Content({ chosen, onChoose }: Props) {
  const { graph, toggle, setAll, ...view } = useGraphView(chosen)
  const sight = useSight(graph.boxes, chosen)
  const critical = useCriticalPath()
  const nodes = useMemo(() => nodesOf(graph), [graph])
  const edges = useMemo(() => edgesOf(graph, critical), [graph, critical])
  const marks = useMarks({
    critical,
    chosen,
    onChoose: (id) => {
      sight.noteClick(id)
      onChoose(id)
    },
    onToggle: (id) => {
      sight.want(id)
      toggle(id)
    },
  })
  const changeAll = (isOpen: boolean): void => {
    sight.want(null)
    setAll(isOpen)
  }
  return (
    <div className={classes.whole} ref={sight.root}>
      {view.hasGroups && (
        <div className={classes.note}>
          <span className="dim">
            {view.all} tasks
            {view.isAllOpen ? '.' : '. Tasks that belong together are folded: open a group to see them.'}
          </span>
          {view.mayOpenAll && !view.isAllOpen && <Small name="Open all groups" onClick={() => changeAll(true)} />}
          {view.isAnyOpen && <Small name="Fold all groups" onClick={() => changeAll(false)} />}
        </div>
      )}
      <MarksContext value={marks}>
        <div className={classes.graph}>
          <ReactFlow<UnitNode>
            nodes={nodes}
            edges={edges}
            nodeTypes={NODE_TYPES}
            nodesDraggable={false}
            nodesConnectable={false}
            nodesFocusable={false}
            edgesFocusable={false}
            elementsSelectable={false}
            onlyRenderVisibleElements
            minZoom={FIT.minZoom}
            onInit={sight.onInit}
            onKeyDown={sight.onKeyDown}
            aria-label="Graph of the tasks. Arrow keys move from box to box."
          >
            <Controls position="top-left" showInteractive={false} fitViewOptions={FIT} />
          </ReactFlow>
        </div>
      </MarksContext>
    </div>
  )
}

function Small({ name, onClick }: { name: string; onClick: () => void }) {
  return (
    <button type="button" className={classes.small} onClick={onClick}>
      {name}
    </button>
  )
}

const nodesOf = ({ boxes }: Graph): UnitNode[] =>
  boxes.map(({ unit, isOpen, x, y, width, height }) => ({
    id: unit.id,
    type: 'unit',
    position: { x, y },
    width,
    height,
    // A frame stands behind the boxes in it.
    zIndex: isOpen ? -1 : 0,
    handles: [
      { type: 'target', position: Position.Left, x: 0, y: height / 2 },
      { type: 'source', position: Position.Right, x: width, y: height / 2 },
    ],
    data: { unit, isOpen },
  }))

function edgesOf({ boxes, edges }: Graph, critical: ReadonlySet<string>): Edge[] {
  const marked = new Set(boxes.flatMap(({ unit }) => (unit.ids.some((id) => critical.has(id)) ? [unit.id] : [])))
  return edges.map(({ from, to }) => ({
    id: `${from}\n${to}`,
    source: from,
    target: to,
    focusable: false,
    className: marked.has(from) && marked.has(to) ? (classes.critical ?? '') : (classes.edge ?? ''),
  }))
}

/** The same marks while nothing that is marked differs; the functions are always those of the last drawing. */
function useMarks({ critical, chosen, ...calls }: Marks): Marks {
  const latest = useRef(calls)
  useEffect(() => {
    latest.current = calls
  })
  return useMemo(
    () => ({
      critical,
      chosen,
      onChoose: (id) => latest.current.onChoose(id),
      onToggle: (id) => latest.current.onToggle(id),
    }),
    [critical, chosen],
  )
}

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
