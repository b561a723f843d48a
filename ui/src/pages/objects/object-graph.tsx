// The graph around an object. A node leads to the page of its object.
import '@xyflow/react/dist/style.css'
import { Group, SegmentedControl, Text, Title, useComputedColorScheme } from '@mantine/core'
import { useQueries, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Controls, type Edge, Handle, MarkerType, type Node, type NodeProps, Position, ReactFlow } from '@xyflow/react'
import { useMemo, useState } from 'react'
import type { GraphObject } from '../../../../src/kernel/object.ts'
import { aroundQuery, objectQuery } from '../../api/objects.ts'
import { oneLine } from '../../parts/figures.ts'
import { Failure, Loading } from '../../parts/states.tsx'
import { type Around, around, NODE, placesOf } from './graph-layout.ts'
import { objectName } from './object-words.ts'
import classes from './objects.module.css'

/** Neighbours whose own relationships are read at depth 2. */
const MOST_NEIGHBOURS = 12

export function ObjectGraph({ projectId, object }: { projectId: string; object: GraphObject }) {
  const [depth, setDepth] = useState('1')
  const near = useQuery(aroundQuery(projectId, object.id))
  const direct = around(object.id, near.data?.items ?? [])
  const neighbours = depth === '2' ? direct.ids.slice(1, 1 + MOST_NEIGHBOURS) : []
  const far = useQueries({ queries: neighbours.map((id) => aroundQuery(projectId, id)) })
  const all = [...(near.data?.items ?? []), ...far.flatMap(({ data }) => data?.items ?? [])]
  const graph = around(object.id, all)
  return (
    <>
      <div className={classes.head}>
        <Title order={2}>Around it</Title>
        <Group gap="xs">
          <SegmentedControl
            size="xs"
            aria-label="Depth"
            data={[
              { value: '1', label: '1 step' },
              { value: '2', label: '2 steps' },
            ]}
            value={depth}
            onChange={setDepth}
          />
        </Group>
      </div>
      {near.isPending && <Loading />}
      {near.isError && !near.data && (
        <Failure what="The graph could not be read." error={near.error} onRetry={() => void near.refetch()} />
      )}
      {near.data && <Drawing key={depth} projectId={projectId} object={object} graph={graph} />}
      {graph.leftOut > 0 && (
        <Text size="xs" className="dim" mt={4}>
          {graph.leftOut} more are not drawn.
        </Text>
      )}
    </>
  )
}

type ObjectNode = Node<{ projectId: string; object: GraphObject | null; isCentre: boolean }, 'object'>

function Drawing({ projectId, object, graph }: { projectId: string; object: GraphObject; graph: Around }) {
  const scheme = useComputedColorScheme('dark')
  const objects = useQueries({ queries: graph.ids.map((id) => objectQuery(projectId, id)) })
  const shape = `${graph.ids.join()} ${graph.edges.map(({ id }) => id).join()}`
  // biome-ignore lint/correctness/useExhaustiveDependencies: the shape names all that the places depend on
  const places = useMemo(() => placesOf(graph), [shape])
  const nodes = graph.ids.map(
    (id, place): ObjectNode => ({
      id,
      type: 'object',
      position: places.get(id) ?? { x: 0, y: 0 },
      data: {
        projectId,
        object: id === object.id ? object : (objects[place]?.data ?? null),
        isCentre: id === object.id,
      },
      width: NODE.width,
      height: NODE.height,
    }),
  )
  const edges = graph.edges.map(
    ({ id, from_id, to_id, type }): Edge => ({
      id,
      source: from_id,
      target: to_id,
      label: oneLine(type, 24),
      ariaLabel: `Relationship ${type}`,
      markerEnd: { type: MarkerType.ArrowClosed },
    }),
  )
  return (
    <div className={classes.graph}>
      <ReactFlow
        key={shape}
        nodes={nodes}
        edges={edges}
        nodeTypes={NODE_TYPES}
        colorMode={scheme}
        fitView
        fitViewOptions={{ maxZoom: 1, padding: 0.15 }}
        minZoom={0.2}
        nodesDraggable={false}
        nodesConnectable={false}
        nodesFocusable={false}
        edgesFocusable={false}
        elementsSelectable={false}
        preventScrolling={false}
        zoomOnScroll={false}
      >
        <Controls showInteractive={false} />
      </ReactFlow>
    </div>
  )
}

function ObjectBox({ id, data: { projectId, object, isCentre } }: NodeProps<ObjectNode>) {
  return (
    <>
      <Handle type="target" position={Position.Left} isConnectable={false} />
      <Link
        to="/projects/$projectId/objects/$objectId"
        params={{ projectId, objectId: id }}
        className={`${classes.node} nodrag nopan`}
        data-center={isCentre}
      >
        <div className="cut">{object ? objectName(object) : id.slice(-8)}</div>
        <div className="cut dim">{object ? oneLine(object.type, 40) : '…'}</div>
      </Link>
      <Handle type="source" position={Position.Right} isConnectable={false} />
    </>
  )
}

const NODE_TYPES = { object: ObjectBox }
