import { Button } from '@mantine/core'
import { Ban } from 'lucide-react'
import type { ListedEval } from '../../../../src/kernel/eval.ts'
import { cancelEval } from '../../api/evals.ts'
import { useWrite } from '../../parts/use-write.ts'

/** The results so far stay, so the button does not ask. */
export function CancelEval({ one, isSmall = false }: { one: ListedEval; isSmall?: boolean }) {
  const { isBusy, write } = useWrite({ reads: [['eval', one.project_id]], isToldAside: true })
  return (
    <Button
      size={isSmall ? 'compact-xs' : 'xs'}
      variant="light"
      color="red"
      loading={isBusy}
      leftSection={<Ban size={13} aria-hidden />}
      aria-label={isSmall ? `Cancel ${one.name}` : 'Cancel'}
      onClick={() =>
        void write(
          () => cancelEval(one.project_id, one.id),
          `The eval ${one.name} is cancelled. Its results so far stay.`,
        )
      }
    >
      Cancel
    </Button>
  )
}
