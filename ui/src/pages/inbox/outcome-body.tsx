// A call whose outcome nobody knows: a person looks and says which.
import { Button, Group } from '@mantine/core'
import { Prose } from '../../parts/prose.tsx'
import type { CardProps } from './inbox-card.tsx'

export function OutcomeBody({ task, isOpen, mayDecide, decisions }: CardProps & { mayDecide: boolean }) {
  if (!isOpen) return null
  const isBusy = decisions.busy.has(task.id)
  const say = (result: 'done' | 'not_done', said: string): void =>
    void decisions.settle(task, { status: 'completed', result }, said)
  return (
    <>
      <Prose>{task.description}</Prose>
      {mayDecide && (
        <Group gap="xs">
          <Button
            size="xs"
            variant="default"
            loading={isBusy}
            onClick={() => say('done', 'It was recorded that the call was done.')}
          >
            It was done
          </Button>
          <Button
            size="xs"
            variant="default"
            loading={isBusy}
            onClick={() => say('not_done', 'It was recorded that the call was not done.')}
          >
            It was not done
          </Button>
        </Group>
      )}
    </>
  )
}
