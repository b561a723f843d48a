import { Button, Group } from '@mantine/core'
import { Check, X } from 'lucide-react'
import type { ReactNode } from 'react'
import classes from './inbox.module.css'
import type { CardProps } from './inbox-card.tsx'

interface Props extends CardProps {
  mayDecide: boolean
  /** The reason for a stale suggestion that gives none itself. */
  usualReason: string
  children?: ReactNode
}

/** Approve and Reject. A stale suggestion says why, and can only be rejected. */
export function DecisionButtons({ task, mayDecide, decisions, usualReason, onReject, children }: Props) {
  const isStale = task.metadata.stale === true
  const isBusy = decisions.busy.has(task.id)
  const reason = typeof task.metadata.stale_reason === 'string' ? task.metadata.stale_reason : usualReason
  return (
    <>
      {isStale && <p className={classes.stale}>{reason} It can only be rejected.</p>}
      {mayDecide && (
        <Group gap="xs" className={classes.decide ?? ''}>
          {!isStale && (
            <Button
              size="xs"
              loading={isBusy}
              leftSection={<Check size={13} aria-hidden />}
              onClick={() => void decisions.approve(task)}
            >
              Approve
            </Button>
          )}
          <Button
            size="xs"
            variant="default"
            disabled={isBusy}
            leftSection={<X size={13} aria-hidden />}
            onClick={onReject}
          >
            Reject
          </Button>
          {children}
        </Group>
      )}
    </>
  )
}
