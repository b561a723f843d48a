// A suggestion: the reason, the exact change, Approve and Reject.
import { Link } from '@tanstack/react-router'
import type { SuggestedChange } from '../../../../src/kernel/task.ts'
import { changeNames, objectChanges } from '../../api/task-words.ts'
import { showMarks } from '../../parts/property-diff.ts'
import { PropertyDiff } from '../../parts/property-diff-view.tsx'
import { Prose } from '../../parts/prose.tsx'
import { DecisionButtons } from './decision-buttons.tsx'
import classes from './inbox.module.css'
import type { CardProps } from './inbox-card.tsx'

export function SuggestionBody(props: CardProps & { mayDecide: boolean }) {
  const { projectId, task, isOpen } = props
  if (!isOpen) return null
  return (
    <>
      {task.reasoning && <Prose>{task.reasoning}</Prose>}
      {objectChanges(task).map((change, place) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the changes of a suggestion never move
        <Change key={place} projectId={projectId} change={change} />
      ))}
      <DecisionButtons {...props} usualReason="The object has changed since." />
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
