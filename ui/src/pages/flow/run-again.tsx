// The way to start an ended flow run once more: the dialog has its flow, its input and its limits.
import { Button, type ButtonProps } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import { Play } from 'lucide-react'

type Props = { projectId: string; runId: string } & Pick<ButtonProps, 'size'>

export function RunAgain({ projectId, runId, size }: Props) {
  return (
    <Button
      size={size ?? 'xs'}
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
