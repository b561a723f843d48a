import { Text } from '@mantine/core'
import { useBlocker } from '@tanstack/react-router'
import { flushSync } from 'react-dom'
import { FormDialog } from '../../parts/form-dialog.tsx'

/** Asks before a page with unsaved changes is left. */
export function LeaveGuard({ isDirty, onLeave }: { isDirty: boolean; onLeave: () => void }) {
  const blocker = useBlocker({
    shouldBlockFn: ({ current, next }) => isDirty && current.pathname !== next.pathname,
    enableBeforeUnload: isDirty,
    withResolver: true,
  })
  if (blocker.status !== 'blocked') return null
  return (
    <FormDialog
      title="Unsaved changes"
      action="Leave without saving"
      refusal="Stay"
      isDestructive
      write={{ isBusy: false, problem: null }}
      onSubmit={() => {
        // The next page may take a while to load, and the editor stays until then.
        flushSync(onLeave)
        blocker.proceed()
      }}
      onClose={blocker.reset}
    >
      <Text size="sm">The changes of this flow are not saved. They are lost if you leave now.</Text>
    </FormDialog>
  )
}
