import { Table, Title } from '@mantine/core'
import { useInfiniteQuery } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import type { Run } from '../../../../src/kernel/run.ts'
import { useNamesOfRuns } from '../../api/agent-names.ts'
import { serverNow } from '../../api/client.ts'
import { runPagesQuery } from '../../api/queries.ts'
import { OpenRow } from '../../parts/open-row.tsx'
import { PageHead } from '../../parts/page-head.tsx'
import { PagedList } from '../../parts/paged-list.tsx'
import { RunCells } from '../../parts/run-cells.tsx'
import { RunStatus } from '../../parts/run-status.tsx'
import { RunFilters } from './run-filters.tsx'
import { filterOf, placeOf, type RunSearch } from './run-search.ts'

const ROUTE = '/projects/$projectId/runs'
const runsRoute = getRouteApi(ROUTE)

export function RunsPage() {
  const { projectId } = runsRoute.useParams()
  const search = runsRoute.useSearch()
  const navigate = useNavigate()
  // A period is counted from its choice. If it moved on with the time, the list would be read anew all the time.
  const [chosenAt, setChosenAt] = useState(serverNow)
  const list = useInfiniteQuery(runPagesQuery(projectId, filterOf(search, chosenAt)))
  const isNarrowed = Object.keys(placeOf(search)).length > 0
  const change = (by: RunSearch): void => {
    if (by.period) setChosenAt(serverNow())
    const wanted = placeOf({ ...search, ...by })
    void navigate({ to: ROUTE, params: { projectId }, search: wanted, replace: true })
  }
  return (
    <>
      <PageHead name="Runs" title={<Title order={1}>Runs</Title>}>
        <RunFilters key={projectId} projectId={projectId} search={search} onChange={change} />
      </PageHead>
      <PagedList
        of={list}
        what="runs"
        empty={isNarrowed ? 'No run matches.' : 'No agent has run here yet. Trigger one, and its run appears.'}
      >
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
                <RunStatus run={run} />
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
