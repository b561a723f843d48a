import { Table } from '@mantine/core'
import { useInfiniteQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { Agent } from '../../../../src/kernel/agent.ts'
import { runPagesQuery } from '../../api/queries.ts'
import { More } from '../../parts/more.tsx'
import { OpenRow } from '../../parts/open-row.tsx'
import { RunCells } from '../../parts/run-cells.tsx'
import { RunStatus } from '../../parts/run-status.tsx'
import { Empty, Failure, Loading, Stale } from '../../parts/states.tsx'

const COLUMNS = ['Status', 'Input', 'Started by', 'Steps', 'Tokens', 'Cost', 'Took', 'Started']

export function AgentRuns({ agent }: { agent: Agent }) {
  const { project_id: projectId, id } = agent
  const list = useInfiniteQuery(runPagesQuery(projectId, { agent_id: id }))
  const runs = list.data?.pages.flatMap(({ items }) => items) ?? []
  if (list.isPending) return <Loading lines={6} />
  if (!list.data)
    return <Failure what="The runs could not be read." error={list.error} onRetry={() => void list.refetch()} />
  if (runs.length === 0) return <Empty>It has not run yet. Press Trigger, and its run appears here.</Empty>
  return (
    <>
      {list.isError && <Stale onRetry={() => void list.refetch()} />}
      <Table.ScrollContainer minWidth={720}>
        <Table highlightOnHover verticalSpacing={5} aria-label="Runs">
          <Table.Thead>
            <Table.Tr>
              {COLUMNS.map((name) => (
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
                  <Link to="/projects/$projectId/runs/$runId" params={{ projectId, runId: run.id }}>
                    <RunStatus run={run} />
                  </Link>
                </Table.Td>
                <RunCells run={run} />
              </OpenRow>
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
      <More list={list} />
    </>
  )
}
