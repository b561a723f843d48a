// The actions on a run that waits: people let it try at once, or decide about its call.
import { Button, Group } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { RefreshCw } from 'lucide-react'
import type { Run } from '../../../../src/kernel/run.ts'
import { post } from '../../api/client.ts'
import { awaitedCallsQuery } from '../../api/inbox.ts'
import { projectPath, runQuery } from '../../api/queries.ts'
import { Problem } from '../../parts/problem.tsx'
import { useWrite } from '../../parts/use-write.ts'

export function TryNow({ run }: { run: Run }) {
  const { write, isBusy, problem } = useWrite({ reads: [runQuery(run.project_id, run.id).queryKey] })
  return (
    <Group gap="xs">
      <Problem text={problem} />
      <Button
        size="xs"
        loading={isBusy}
        leftSection={<RefreshCw size={13} aria-hidden />}
        onClick={() => void write(() => post(projectPath(run.project_id, `/runs/${run.id}/try-now`)))}
      >
        Try now
      </Button>
    </Group>
  )
}

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
