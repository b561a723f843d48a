// The events that the reactions of the agent gave it, and what became of them.
import { Button, Table, Text } from '@mantine/core'
import { useInfiniteQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { RotateCw } from 'lucide-react'
import type { Agent } from '../../../../src/kernel/agent.ts'
import type { ProcessingEntry } from '../../../../src/kernel/object.ts'
import { agentPath, logPagesQuery } from '../../api/agents.ts'
import { post } from '../../api/client.ts'
import { useRole } from '../../app/role.ts'
import { More } from '../../parts/more.tsx'
import { Problem } from '../../parts/problem.tsx'
import { Empty, Failure, Loading, Stale } from '../../parts/states.tsx'
import { Status } from '../../parts/status.tsx'
import { useWrite } from '../../parts/use-write.ts'
import { When } from '../../parts/when.tsx'

const CAN_BE_RETRIED: readonly string[] = ['failed', 'abandoned', 'skipped'] satisfies ProcessingEntry['status'][]
const COLUMNS = ['Status', 'Event', 'Version', 'Run', 'Came', 'Reason', '']

export function AgentLog({ agent }: { agent: Agent }) {
  const { project_id: projectId, id } = agent
  const mayRetry = useRole(projectId) !== 'viewer'
  // No change is told for an entry, so that the list is read again while the panel is open.
  const list = useInfiniteQuery({ ...logPagesQuery(projectId, id), refetchInterval: 5_000 })
  const { write, isBusy, problem } = useWrite({ reads: [['agent', projectId]] })
  const entries = list.data?.pages.flatMap(({ items }) => items) ?? []
  if (list.isPending) return <Loading lines={6} />
  if (!list.data)
    return <Failure what="The log could not be read." error={list.error} onRetry={() => void list.refetch()} />
  if (entries.length === 0)
    return (
      <Empty>
        {agent.trigger_type === 'reaction'
          ? 'No change of an object has concerned it yet.'
          : 'Only agents that react to changes of objects have entries here.'}
      </Empty>
    )
  const retry = (entry: ProcessingEntry): void =>
    void write(() => post(agentPath(projectId, id, `/processing-log/${entry.id}/retry`)), 'The event is tried again.')
  return (
    <>
      {list.isError && <Stale onRetry={() => void list.refetch()} />}
      <Problem text={problem} />
      <Table.ScrollContainer minWidth={720}>
        <Table highlightOnHover verticalSpacing={5} aria-label="Processing log">
          <Table.Thead>
            <Table.Tr>
              {COLUMNS.map((name) =>
                name === '' ? (
                  <Table.Td key={name} />
                ) : (
                  <Table.Th key={name} className="dim" fw={500}>
                    {name}
                  </Table.Th>
                ),
              )}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {entries.map((entry) => (
              <Entry
                key={entry.id}
                entry={entry}
                projectId={projectId}
                isBusy={isBusy}
                onRetry={mayRetry && CAN_BE_RETRIED.includes(entry.status) ? () => retry(entry) : null}
              />
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
      <More list={list} />
    </>
  )
}

function Entry(props: { entry: ProcessingEntry; projectId: string; isBusy: boolean; onRetry: (() => void) | null }) {
  const { entry, projectId, isBusy, onRetry } = props
  return (
    <Table.Tr>
      <Table.Td>
        <Status of={entry.status} />
      </Table.Td>
      <Table.Td>
        <Link to="/projects/$projectId/objects/$objectId" params={{ projectId, objectId: entry.graph_object_id }}>
          object {entry.event_type}
        </Link>
      </Table.Td>
      <Table.Td className="number">{entry.object_version}</Table.Td>
      <Table.Td>
        {entry.run_id && (
          <Link to="/projects/$projectId/runs/$runId" params={{ projectId, runId: entry.run_id }}>
            run
          </Link>
        )}
      </Table.Td>
      <Table.Td className="dim">
        <When at={entry.created_at} />
      </Table.Td>
      <Table.Td maw={320}>
        <Text size="sm" className="dim" lineClamp={2} title={entry.error_message ?? undefined}>
          {entry.error_message}
        </Text>
      </Table.Td>
      <Table.Td>
        {onRetry && (
          <Button
            size="compact-sm"
            variant="default"
            disabled={isBusy}
            leftSection={<RotateCw size={13} aria-hidden />}
            onClick={onRetry}
          >
            Retry
          </Button>
        )}
      </Table.Td>
    </Table.Tr>
  )
}
