import { Group, Select, Table, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import type { Run } from '../../../../src/kernel/run.ts'
import { agentsQuery, runsQuery } from '../../api/queries.ts'
import { PageHead } from '../../parts/page-head.tsx'
import { RunCells } from '../../parts/run-cells.tsx'
import { Empty, Failure, Loading, Stale } from '../../parts/states.tsx'
import { Status } from '../../parts/status.tsx'

const ROUTE = '/projects/$projectId/runs'
const runsRoute = getRouteApi(ROUTE)

const STATUSES = ['queued', 'running', 'paused', 'completed', 'failed', 'cancelled']

export function RunsPage() {
  const { projectId } = runsRoute.useParams()
  const { status, agent } = runsRoute.useSearch()
  const navigate = useNavigate()
  const agents = useQuery(agentsQuery(projectId))
  const runs = useQuery(runsQuery(projectId, { status, agent_id: agent }))
  const names = new Map(agents.data?.items.map(({ id, name }) => [id, name]))
  const filter = (change: { status?: string | undefined; agent?: string | undefined }): void => {
    const wanted = Object.entries({ status, agent, ...change }).filter(([, value]) => value)
    void navigate({ to: ROUTE, params: { projectId }, search: Object.fromEntries(wanted), replace: true })
  }
  return (
    <>
      <PageHead name="Runs" title={<Title order={1}>Runs</Title>}>
        <Group gap="xs">
          <Select
            aria-label="Status"
            placeholder="Any status"
            size="xs"
            w={130}
            clearable
            data={STATUSES}
            value={status ?? null}
            onChange={(value) => filter({ status: value ?? undefined })}
          />
          <Select
            aria-label="Agent"
            placeholder="Any agent"
            size="xs"
            w={180}
            clearable
            searchable
            data={(agents.data?.items ?? []).map(({ id, name }) => ({ value: id, label: name }))}
            value={agent ?? null}
            onChange={(value) => filter({ agent: value ?? undefined })}
          />
        </Group>
      </PageHead>
      {runs.isError && runs.data && <Stale onRetry={() => void runs.refetch()} />}
      {runs.isPending && <Loading lines={8} />}
      {runs.isError && !runs.data && (
        <Failure what="The runs could not be read." error={runs.error} onRetry={() => void runs.refetch()} />
      )}
      {runs.data?.items.length === 0 && (
        <Empty>
          {status || agent ? 'No run matches.' : 'No agent has run here yet. Trigger one, and its run appears.'}
        </Empty>
      )}
      {runs.data && runs.data.items.length > 0 && (
        <RunTable runs={runs.data.items} names={names} projectId={projectId} />
      )}
    </>
  )
}

function RunTable({ runs, names, projectId }: { runs: Run[]; names: Map<string, string>; projectId: string }) {
  return (
    <Table.ScrollContainer minWidth={720}>
      <Table highlightOnHover verticalSpacing={5}>
        <Table.Thead>
          <Table.Tr>
            {['Status', 'Agent', 'Input', 'Trigger', 'Steps', 'Tokens', 'Cost', 'Took', 'Started'].map((name) => (
              <Table.Th key={name} className="dim" fw={500}>
                {name}
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {runs.map((run) => (
            <Table.Tr key={run.id}>
              <Table.Td>
                <Status of={run.status} {...(run.pause_reason && { title: run.pause_reason.replaceAll('_', ' ') })} />
              </Table.Td>
              <Table.Td>
                <Link to="/projects/$projectId/runs/$runId" params={{ projectId, runId: run.id }}>
                  {run.agent_id === null ? 'Supervisor' : (names.get(run.agent_id) ?? 'Deleted agent')}
                </Link>
              </Table.Td>
              <RunCells run={run} />
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  )
}
