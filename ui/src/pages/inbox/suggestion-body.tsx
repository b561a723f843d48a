// A suggestion: the reason, the exact change, Approve and Reject.
import { Button, Group } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import { Check, X } from 'lucide-react'
import { objectChanges, type SuggestedChange } from '../../../../src/kernel/task.ts'
import { changeNames } from '../../api/task-words.ts'
import { showMarks } from '../../parts/property-diff.ts'
import { PropertyDiff } from '../../parts/property-diff-view.tsx'
import { Prose } from '../../parts/prose.tsx'
import classes from './inbox.module.css'
import type { CardProps } from './inbox-card.tsx'

export function SuggestionBody(props: CardProps & { mayDecide: boolean }) {
  const { projectId, task, isOpen, mayDecide, decisions } = props
  if (!isOpen) return null
  const isStale = task.metadata.stale === true
  const isBusy = decisions.busy.has(task.id)
  return (
    <>
      {task.reasoning && <Prose>{task.reasoning}</Prose>}
      {objectChanges(task).map((change, place) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the changes of a suggestion never move
        <Change key={place} projectId={projectId} change={change} />
      ))}
      {isStale && (
        <p className={classes.stale}>
          {typeof task.metadata.stale_reason === 'string'
            ? task.metadata.stale_reason
            : 'The object has changed since.'}{' '}
          It can only be rejected.
        </p>
      )}
      {mayDecide && (
        <Group gap="xs">
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
            onClick={props.onReject}
          >
            Reject
          </Button>
        </Group>
      )}
    </>
  )
}

function Change({ projectId, change }: { projectId: string; change: SuggestedChange }) {
  const { op, object_type, object_id: objectId, key, base_version: version, before, after } = change
  const type = showMarks(object_type)
  return (
    <div className={classes.change}>
      <p>
        <b>{changeNames[op]}</b>{' '}
        {objectId === null ? (
          type
        ) : (
          <Link to="/projects/$projectId/objects/$objectId" params={{ projectId, objectId }}>
            {type}
          </Link>
        )}
        {key && ` ${showMarks(key)}`}
        {version !== null && <span className="dim number"> as of version {version}</span>}
      </p>
      <PropertyDiff before={before} after={after} />
    </div>
  )
}
