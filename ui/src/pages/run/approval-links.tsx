// The calls of a run that wait for a person.
import { Group } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { Run } from '../../../../src/kernel/run.ts'
import { awaitedCallsQuery } from '../../api/inbox.ts'

/** Leads to the calls of the run in the inbox. */
export function ApprovalLinks({ run }: { run: Run }) {
  const { project_id: projectId } = run
  const { data: tasks = [] } = useQuery(awaitedCallsQuery(projectId, run.id))
  return (
    <Group gap="xs">
      {tasks.map(({ id, tool }) => (
        <Link key={id} to="/projects/$projectId/inbox" params={{ projectId }} search={{ item: id }}>
          Review call: {tool}
        </Link>
      ))}
    </Group>
  )
}
