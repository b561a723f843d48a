// Lets a run that waits for its provider try at once.
import { Button, Group } from '@mantine/core'
import { RefreshCw } from 'lucide-react'
import type { Run } from '../../../src/kernel/run.ts'
import { post } from '../api/client.ts'
import { projectPath, runQuery } from '../api/queries.ts'
import { Problem } from './problem.tsx'
import { useWrite } from './use-write.ts'

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
