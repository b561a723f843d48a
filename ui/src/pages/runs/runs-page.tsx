import { Group, Select, Table, Title } from '@mantine/core'
import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import type { Run } from '../../../../src/kernel/run.ts'
import { useNamesOfRuns } from '../../api/agent-names.ts'
import { everyAgent, orgQuery } from '../../api/organisation.ts'
import { runPagesQuery } from '../../api/queries.ts'
import { OpenRow } from '../../parts/open-row.tsx'
import { PageHead } from '../../parts/page-head.tsx'
import { PagedList } from '../../parts/paged-list.tsx'
import { RunCells } from '../../parts/run-cells.tsx'
import { Status } from '../../parts/status.tsx'

const ROUTE = '/projects/$projectId/runs'
const runsRoute = getRouteApi(ROUTE)

const MOST_SHOWN = 50
const STATUSES = ['queued', 'running', 'paused', 'completed', 'failed', 'cancelled']

export function RunsPage() {
  const { projectId } = runsRoute.useParams()
  const { status, agent } = runsRoute.useSearch()
  const navigate = useNavigate()
  const tree = useQuery({ ...orgQuery(projectId), refetchInterval: false })
  const agents = everyAgent(tree.data ?? [])
  const list = useInfiniteQuery(runPagesQuery(projectId, { status, agent_id: agent }))
  const nothing = status || agent ? 'No run matches.' : 'No agent has run here yet. Trigger one, and its run appears.'
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
            limit={MOST_SHOWN}
            nothingFoundMessage="No agent has this name."
            data={agents.map(({ id, name }) => ({ value: id, label: name }))}
            value={agent ?? null}
            onChange={(value) => filter({ agent: value ?? undefined })}
          />
        </Group>
      </PageHead>
      <PagedList of={list} what="runs" empty={nothing}>
        {(runs) => <RunTable runs={runs} projectId={projectId} />}
      </PagedList>
    </>
  )
}

function RunTable({ runs, projectId }: { runs: Run[]; projectId: string }) {
  const nameOf = useNamesOfRuns(runs)
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
            <OpenRow key={run.id}>
              <Table.Td>
                <Status of={run.status} {...(run.pause_reason && { title: run.pause_reason.replaceAll('_', ' ') })} />
              </Table.Td>
              <Table.Td>
                <Link to="/projects/$projectId/runs/$runId" params={{ projectId, runId: run.id }}>
                  {nameOf(run)}
                </Link>
              </Table.Td>
              <RunCells run={run} />
            </OpenRow>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  )
}
