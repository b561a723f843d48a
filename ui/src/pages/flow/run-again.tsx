// The way to start an ended flow run once more: the dialog has its flow, its input and its limits.
import { Button } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import { Play } from 'lucide-react'

export function RunAgain({ projectId, runId }: { projectId: string; runId: string }) {
  return (
    <Button
      size="xs"
      variant="default"
      leftSection={<Play size={13} aria-hidden />}
      renderRoot={(props) => (
        <Link to="/projects/$projectId/flows" params={{ projectId }} search={{ again: runId }} {...props} />
      )}
    >
      Run again
    </Button>
  )
}
