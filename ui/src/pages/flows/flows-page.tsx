// The flow runs of a project, live, and beside them what can be started.
import { Button, Group, Select, Title } from '@mantine/core'
import { useInfiniteQuery, useQuery, useQueryClient } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { Play, Plus } from 'lucide-react'
import { useEffect, useMemo, useState } from 'react'
import { type FlowRun, flowRunStatuses } from '../../../../src/kernel/flow-run.ts'
import { activeFlowRunsQuery, flowRunsQuery, flowTemplatesQuery, storedFlowsQuery } from '../../api/flows.ts'
import { useRole } from '../../app/role.ts'
import { More } from '../../parts/more.tsx'
import { PageHead } from '../../parts/page-head.tsx'
import { Empty, Failure, Loading, Stale } from '../../parts/states.tsx'
import { FlowList } from './flow-list.tsx'
import { FlowRunTable } from './flow-run-table.tsx'
import classes from './flows-page.module.css'
import { StartAgainDialog, StartFlowDialog } from './start-flow-dialog.tsx'

const ROUTE = '/projects/$projectId/flows'
const route = getRouteApi(ROUTE)

export function FlowsPage() {
  const { projectId } = route.useParams()
  const { status, flow, again } = route.useSearch()
  const navigate = useNavigate()
  const role = useRole(projectId)
  const flows = useQuery(storedFlowsQuery(projectId))
  const templates = useQuery(flowTemplatesQuery(projectId))
  const [start, setStart] = useState<string | null>(null)
  const filter = (change: { status?: string | undefined; flow?: string | undefined }): void => {
    const wanted = Object.entries({ status, flow, ...change }).filter(([, value]) => value)
    void navigate({ to: ROUTE, params: { projectId }, search: Object.fromEntries(wanted), replace: true })
  }
  const names = new Map(flows.data?.map(({ id, name }) => [id, name]))
  return (
    <>
      <PageHead name="Flows" title={<Title order={1}>Flows</Title>}>
        <Group gap="xs">
          <Select
            aria-label="Status"
            placeholder="Any status"
            size="xs"
            w={130}
            clearable
            data={[...flowRunStatuses]}
            value={status ?? null}
            onChange={(value) => filter({ status: value ?? undefined })}
          />
          <Select
            aria-label="Flow"
            placeholder="Any flow"
            size="xs"
            w={170}
            clearable
            searchable
            data={(flows.data ?? []).map(({ id, name }) => ({ value: id, label: name }))}
            value={flow ?? null}
            onChange={(value) => filter({ flow: value ?? undefined })}
          />
          {role === 'admin' && (
            <Button
              size="xs"
              variant="default"
              leftSection={<Plus size={13} aria-hidden />}
              renderRoot={(props) => <Link to="/projects/$projectId/flows/new" params={{ projectId }} {...props} />}
            >
              New flow
            </Button>
          )}
          {role !== 'viewer' && (
            <Button size="xs" leftSection={<Play size={13} aria-hidden />} onClick={() => setStart('')}>
              Start flow
            </Button>
          )}
        </Group>
      </PageHead>
      <div className={classes.columns}>
        <FlowRuns projectId={projectId} status={status} flowId={flow} names={names} />
        <aside className={classes.aside} aria-label="What can be started">
          <FlowList projectId={projectId} flows={flows} templates={templates} role={role} onStart={setStart} />
        </aside>
      </div>
      {again !== undefined && flows.data && templates.data && (
        <StartAgainDialog
          projectId={projectId}
          flows={flows.data}
          templates={templates.data.items}
          runId={again}
          onClose={() => filter({})}
        />
      )}
      {start !== null && flows.data && templates.data && (
        <StartFlowDialog
          projectId={projectId}
          flows={flows.data}
          templates={templates.data.items}
          chosen={start}
          onClose={() => setStart(null)}
        />
      )}
    </>
  )
}

interface RunsProps {
  projectId: string
  status: string | undefined
  flowId: string | undefined
  names: ReadonlyMap<string, string>
}

function FlowRuns({ projectId, status, flowId, names }: RunsProps) {
  const { runs, list, active } = useFlowRuns(projectId, status, flowId)
  if (list.isPending) return <Loading lines={8} />
  if (!list.data) {
    return <Failure what="The flow runs could not be read." error={list.error} onRetry={() => void list.refetch()} />
  }
  return (
    <div>
      {(list.isError || active.isError) && (
        <Stale onRetry={() => void Promise.all([list.refetch(), active.refetch()])} />
      )}
      {runs.length === 0 ? (
        <Empty>
          {status || flowId ? 'No flow run matches.' : 'No flow has run here yet. Start one, and its run appears.'}
        </Empty>
      ) : (
        <FlowRunTable projectId={projectId} runs={runs} names={names} />
      )}
      <More list={list} />
    </div>
  )
}

/** The list, in which runs under way are as new as the last second. */
function useFlowRuns(projectId: string, status: string | undefined, flowId: string | undefined) {
  const client = useQueryClient()
  const filter = useMemo(() => ({ status, flow_id: flowId }), [status, flowId])
  const list = useInfiniteQuery(flowRunsQuery(projectId, filter))
  const active = useQuery(activeFlowRunsQuery(projectId))
  const running = active.data?.map(({ id }) => id).join(' ') ?? ''
  // A run that is no longer under way has ended, and stands in the list as it ended.
  // biome-ignore lint/correctness/useExhaustiveDependencies: other runs under way mean another list
  useEffect(() => {
    void client.invalidateQueries({ queryKey: flowRunsQuery(projectId, filter).queryKey })
  }, [client, projectId, filter, running])
  const runs = useMemo(() => {
    const isWanted = (run: FlowRun): boolean =>
      (status === undefined || run.status === status) && (flowId === undefined || run.flow_id === flowId)
    const newest = new Map((active.data ?? []).map((run) => [run.id, run]))
    const listed = (list.data?.pages ?? []).flatMap(({ items }) => items)
    const known = new Set(listed.map(({ id }) => id))
    return [
      ...[...newest.values()].filter((run) => !known.has(run.id) && isWanted(run)),
      ...listed.map((run) => newest.get(run.id) ?? run),
    ]
  }, [list.data, active.data, status, flowId])
  return { runs, list, active }
}
