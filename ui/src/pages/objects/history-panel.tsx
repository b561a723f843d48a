// Every version of an object, newest first: who made it, in which run, who approved it, and what it changed.
import { Text, Title } from '@mantine/core'
import { useInfiniteQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { ObjectVersion } from '../../../../src/kernel/object.ts'
import { objectHistoryQuery } from '../../api/objects.ts'
import { PersonName } from '../../app/person-name.tsx'
import { oneLine } from '../../parts/figures.ts'
import { More } from '../../parts/more.tsx'
import { Failure, Loading } from '../../parts/states.tsx'
import { When } from '../../parts/when.tsx'
import { Actor } from './actor.tsx'
import { changesBetween, type PropertyChange } from './object-words.ts'
import classes from './objects.module.css'

const VERBS = { create: 'created', update: 'changed', delete: 'deleted' }

export function HistoryPanel({ projectId, objectId }: { projectId: string; objectId: string }) {
  const history = useInfiniteQuery(objectHistoryQuery(projectId, objectId))
  const versions = history.data?.pages.flatMap(({ items }) => items) ?? []
  return (
    <section className={classes.panel} aria-label="History">
      <div className={classes.head}>
        <Title order={2}>History</Title>
      </div>
      {history.isPending && <Loading />}
      {history.isError && (
        <Failure what="The history could not be read." error={history.error} onRetry={() => void history.refetch()} />
      )}
      <ol className={classes.list} aria-label="Versions, newest first">
        {versions.map((version, place) => (
          <Version
            key={version.version}
            projectId={projectId}
            version={version}
            before={versions[place + 1] ?? null}
            isWhole={place + 1 < versions.length || !history.hasNextPage}
          />
        ))}
      </ol>
      <More list={history} />
    </section>
  )
}

interface Props {
  projectId: string
  version: ObjectVersion
  /** The version before it. */
  before: ObjectVersion | null
  /** False if the version before it is on the next page. */
  isWhole: boolean
}

function Version({ projectId, version, before, isWhole }: Props) {
  return (
    <li className={classes.entry}>
      <Text size="sm">
        <b>Version {version.version}</b> {VERBS[version.op]} by{' '}
        <Actor projectId={projectId} type={version.actor_type} id={version.actor_id} />
        {version.run_id && (
          <>
            {' in '}
            <Link to="/projects/$projectId/runs/$runId" params={{ projectId, runId: version.run_id }}>
              its run
            </Link>
          </>
        )}
        {version.approved_by && (
          <>
            , approved by <PersonName projectId={projectId} id={version.approved_by} />
          </>
        )}{' '}
        <span className="dim">
          <When at={version.at} />
        </span>
      </Text>
      {isWhole && version.op !== 'delete' && (
        <ul className={classes.changes}>
          {changesBetween(before?.properties ?? null, version.properties).map((change) => (
            <Change key={change.name} change={change} />
          ))}
        </ul>
      )}
    </li>
  )
}

const SHOWN = 200

function Change({ change: { name, kind, before, after } }: { change: PropertyChange }) {
  return (
    <li>
      <span className="dim">{name}: </span>
      {kind !== 'added' && <del title={oneLine(before, 2_000)}>{oneLine(before, SHOWN)}</del>}
      {kind === 'changed' && ' '}
      {kind !== 'removed' && <ins title={oneLine(after, 2_000)}>{oneLine(after, SHOWN)}</ins>}
    </li>
  )
}
