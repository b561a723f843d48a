import { Text } from '@mantine/core'
import { useBlocker } from '@tanstack/react-router'
import { flushSync } from 'react-dom'
import { FormDialog } from './form-dialog.tsx'

interface Props {
  /** Such as "this flow". */
  of: string
  isDirty: boolean
  /** Called before the page is left. */
  onLeave?: () => void
}

/** Asks before a page with unsaved changes is left by a link. The tab is guarded too where it may hold much work. */
export function LeaveGuard({ of, isDirty, onLeave }: Props) {
  const blocker = useBlocker({
    shouldBlockFn: ({ current, next }) => isDirty && current.pathname !== next.pathname,
    enableBeforeUnload: isDirty && onLeave !== undefined,
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
        if (onLeave) flushSync(onLeave)
        blocker.proceed()
      }}
      onClose={blocker.reset}
    >
      <Text size="sm">The changes of {of} are not saved. They are lost if you leave now.</Text>
    </FormDialog>
  )
}
