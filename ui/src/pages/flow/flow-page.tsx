// The page of a flow run: how it stands, what to do, and its tasks in time, as a graph and as a table, live.
import { Tabs } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { ChartGantt, PanelsTopLeft, Table2, Workflow } from 'lucide-react'
import { useCallback, useState } from 'react'
import type { FlowRun } from '../../../../src/kernel/flow-run.ts'
import { ApiError } from '../../api/client.ts'
import {
  flowAlertsQuery,
  flowMetricsQuery,
  flowTopologyQuery,
  patternName,
  statusOfFlow,
  storedFlowsQuery,
} from '../../api/flows.ts'
import { useIsHalted } from '../../app/halt.tsx'
import { Unknown } from '../../app/unknown.tsx'
import { lazily } from '../../parts/lazily.tsx'
import { Panel } from '../../parts/panel.tsx'
import { Failure, Loading, Stale } from '../../parts/states.tsx'
import { FlowAlerts } from './flow-alerts.tsx'
import { FlowDetails } from './flow-details.tsx'
import { FlowDialog, type FlowDialogType } from './flow-dialogs.tsx'
import { FlowFigures, StatusBar } from './flow-figures.tsx'
import { FlowHead } from './flow-head.tsx'
import classes from './flow-page.module.css'
import { FlowReason } from './flow-reason.tsx'
import { FlowWait } from './flow-wait.tsx'
import { TaskDetails } from './task-details.tsx'
import { TaskTable } from './task-table.tsx'
import { Timeline } from './timeline.tsx'
import { StoreContext, useShownIds } from './use-flow-store.ts'
import { type LiveFlow, useLiveFlow } from './use-live-flow.ts'

const ROUTE = '/projects/$projectId/flows/$flowRunId'
const route = getRouteApi(ROUTE)
const Graph = lazily(() => import('./flow-graph.tsx').then((module) => module.FlowGraph))

const VIEWS = [
  { value: 'timeline', name: 'Timeline', icon: ChartGantt },
  { value: 'split', name: 'Split', icon: PanelsTopLeft },
  { value: 'graph', name: 'Graph', icon: Workflow },
  { value: 'tasks', name: 'Tasks', icon: Table2 },
]

export function FlowPage() {
  const { projectId, flowRunId } = route.useParams()
  return <FlowOf key={flowRunId} projectId={projectId} flowRunId={flowRunId} />
}

function FlowOf({ projectId, flowRunId }: { projectId: string; flowRunId: string }) {
  const live = useLiveFlow(projectId, flowRunId)
  const { run } = live
  if (run.isPending) return <Loading lines={10} />
  if (run.error instanceof ApiError && run.error.status === 404) return <Unknown />
  if (!run.data) {
    return <Failure what="The flow run could not be read." error={run.error} onRetry={() => void run.refetch()} />
  }
  return (
    <StoreContext value={live.store}>
      {(run.isError || !live.isLive) && <Stale onRetry={live.readAgain} />}
      <Content projectId={projectId} run={run.data} live={live} />
    </StoreContext>
  )
}

function Content({ projectId, run, live }: { projectId: string; run: FlowRun; live: LiveFlow }) {
  const [dialog, setDialog] = useState<FlowDialogType | null>(null)
  const isActive = run.completed_at === null
  const isHalted = useIsHalted(projectId) && isActive
  const status = statusOfFlow(run, isHalted)
  const topology = useQuery(flowTopologyQuery(projectId, run.id, isActive))
  const metrics = useQuery(flowMetricsQuery(projectId, run.id, isActive))
  const alerts = useQuery(flowAlertsQuery(projectId, run.id, isActive))
  const name = useFlowName(projectId, run)
  const { search, change } = useAddress(projectId, run.id)
  const choose = useCallback((task: string | undefined) => change({ task }), [change])
  const parts = { projectId, run, onChoose: choose }
  return (
    <>
      <FlowHead
        projectId={projectId}
        run={run}
        name={name}
        status={status}
        isHalted={isHalted}
        isLive={live.isLive}
        isAdaptive={topology.data ? topology.data.current !== null : run.pattern === 'adaptive'}
        onDialog={setDialog}
      />
      <div className="visually-hidden" role="status">
        The flow run is {status.replaceAll('_', ' ')}.
      </div>
      <FlowReason {...parts} onResume={() => setDialog('resume')} />
      <FlowWait projectId={projectId} run={run} />
      <FlowAlerts
        {...parts}
        alerts={alerts.data?.items ?? []}
        bottleneck={metrics.data?.bottlenecks[0]?.task_id}
        onDialog={setDialog}
      />
      <FlowFigures run={run} status={status} isHalted={isHalted} />
      <Tabs
        value={VIEWS.some(({ value }) => value === search.view) ? (search.view ?? null) : 'timeline'}
        onChange={(view) => change({ view: view ?? undefined })}
        keepMounted={false}
        variant="pills"
      >
        <div className={classes.under}>
          <StatusBar run={run} status={search.status} onFilter={(wanted) => change({ status: wanted })} />
          <Tabs.List aria-label="View">
            {VIEWS.map(({ value, name: word, icon: Icon }) => (
              <Tabs.Tab key={value} value={value} py={5} px={9} leftSection={<Icon size={14} aria-hidden />}>
                {word}
              </Tabs.Tab>
            ))}
          </Tabs.List>
        </div>
        <div className={classes.columns}>
          {VIEWS.map(({ value }) => (
            <Tabs.Panel
              key={value}
              value={value}
              className={classes.view ?? ''}
              data-fills={value === 'graph' || value === 'split' || undefined}
            >
              <Views view={value} live={live} status={search.status} chosen={search.task} {...parts} />
            </Tabs.Panel>
          ))}
          <aside className={classes.aside} aria-label="Details">
            {search.task === undefined ? (
              <FlowDetails {...parts} topology={topology.data} metrics={metrics.data} />
            ) : (
              <TaskDetails {...parts} taskId={search.task} />
            )}
          </aside>
        </div>
      </Tabs>
      {dialog && (
        <FlowDialog
          type={dialog}
          projectId={projectId}
          run={run}
          topology={topology.data}
          onClose={() => setDialog(null)}
        />
      )}
    </>
  )
}

interface Search {
  view?: string | undefined
  status?: string | undefined
  task?: string | undefined
}

/** The view, the filter and the chosen task are in the address, so that it can be shared. */
function useAddress(projectId: string, flowRunId: string) {
  const search = route.useSearch()
  const navigate = useNavigate()
  const change = useCallback(
    (wanted: Search): void => {
      void navigate({
        to: ROUTE,
        params: { projectId, flowRunId },
        search: (known: Search) =>
          Object.fromEntries(Object.entries({ ...known, ...wanted }).filter(([, value]) => value)),
        replace: true,
        resetScroll: false,
      })
    },
    [navigate, projectId, flowRunId],
  )
  return { search, change }
}

/** A run that was started without a stored flow has no name of its own. */
function useFlowName(projectId: string, { flow_id: flowId, pattern }: FlowRun): string {
  const flows = useQuery({ ...storedFlowsQuery(projectId), enabled: flowId !== null })
  const stored = flows.data?.find(({ id }) => id === flowId)?.name
  if (stored !== undefined) return stored
  const [first = '', ...rest] = patternName(pattern)
  return `${first.toUpperCase()}${rest.join('')} flow`
}

interface ViewProps {
  projectId: string
  run: FlowRun
  live: LiveFlow
  view: string
  status: string | undefined
  chosen: string | undefined
  onChoose: (id: string | undefined) => void
}

function Views({ projectId, run, live, view, status, chosen, onChoose }: ViewProps) {
  const ids = useShownIds(status)
  if (!live.isRead) {
    return live.problem === null ? (
      <Loading lines={8} />
    ) : (
      <Failure what="The tasks could not be read." error={live.problem} onRetry={live.readAgain} />
    )
  }
  if (view === 'tasks') {
    return <TaskTable key={status} projectId={projectId} run={run} ids={ids} chosen={chosen} onChoose={onChoose} />
  }
  const graph = (
    <Panel name="The graph">
      <Graph chosen={chosen} onChoose={onChoose} />
    </Panel>
  )
  if (view === 'graph') return graph
  const timeline = <Timeline key={status} run={run} ids={ids} chosen={chosen} onChoose={onChoose} />
  if (view === 'timeline') return timeline
  return (
    <div className={classes.split}>
      {timeline}
      <div style={{ minHeight: 0 }}>{graph}</div>
    </div>
  )
}
