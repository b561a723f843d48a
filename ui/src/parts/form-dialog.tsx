// A dialog with one action: the fields, why the last attempt failed, and the button that does it.
import { Button, Group, Modal, Stack } from '@mantine/core'
import { type FormEvent, type KeyboardEvent, type ReactNode, useEffect } from 'react'
import { Problem } from './problem.tsx'
import type { Write } from './use-write.ts'

interface Props {
  title: string
  /** The name of the button. */
  action: string
  /** The name of the button that leaves everything as it is. */
  refusal?: string
  write: Pick<Write, 'isBusy' | 'problem'>
  onSubmit: () => void
  onClose: () => void
  children: ReactNode
  size?: string | number
  isDestructive?: boolean
  isDisabled?: boolean
  /** True: only a button closes the dialog, so that no key or click beside it loses what was typed. */
  isKept?: boolean
  /** False: the page itself decides where the focus goes. */
  returnsFocus?: boolean
  /** Beside the button. */
  more?: ReactNode
}

/** Escape on a button closes only this dialog, not the drawer that it may stand in. */
const ownEscape = { 'data-mantine-stop-propagation': 'true', 'data-own-escape': 'true' }

export function FormDialog(props: Props) {
  const { isKept = false, isDestructive = false, returnsFocus = true, onClose } = props
  useFocusBack(returnsFocus)
  const submit = (event: FormEvent): void => {
    event.preventDefault()
    // A dialog may stand in a form of the page.
    event.stopPropagation()
    if (!props.write.isBusy) props.onSubmit()
  }
  const closeOnEscape = (event: KeyboardEvent): void => {
    const isOwn = (event.target as Element).hasAttribute('data-own-escape') // keys go to elements
    if (event.key === 'Escape' && isOwn && !isKept) onClose()
  }
  return (
    <Modal
      opened
      onClose={onClose}
      title={props.title}
      size={props.size ?? 'md'}
      closeOnEscape={!isKept}
      closeOnClickOutside={!isKept}
      returnFocus={false}
      closeButtonProps={{ 'aria-label': 'Close', ...ownEscape }}
      onKeyDown={closeOnEscape}
    >
      <form onSubmit={submit}>
        <Stack>
          {props.children}
          <Problem text={props.write.problem} />
          <Group justify="flex-end" gap="xs">
            {props.more}
            <Button
              size="xs"
              variant="default"
              onClick={onClose}
              {...ownEscape}
              {...(isDestructive && { 'data-autofocus': true })}
            >
              {props.refusal ?? (props.action === 'Cancel' ? 'Close' : 'Cancel')}
            </Button>
            <Button
              size="xs"
              type="submit"
              loading={props.write.isBusy}
              disabled={props.isDisabled ?? false}
              {...ownEscape}
              {...(isDestructive && { color: 'red.9' })}
            >
              {props.action}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  )
}

/** The control that opened the dialog has the focus again when the dialog is gone. */
function useFocusBack(isWanted: boolean): void {
  useEffect(() => {
    const before = document.activeElement
    return () => {
      if (isWanted && before instanceof HTMLElement && before.isConnected) before.focus()
    }
  }, [isWanted])
}
