// One object: its properties, who changed them, and what is around it.
import { Badge, Button, Group, Text, Title } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { Trash2 } from 'lucide-react'
import { useState } from 'react'
import type { GraphObject } from '../../../../src/kernel/object.ts'
import { ApiError, remove } from '../../api/client.ts'
import { objectPath, objectQuery } from '../../api/objects.ts'
import { useRole } from '../../app/role.ts'
import { Unknown } from '../../app/unknown.tsx'
import { Confirm, type Question } from '../../parts/confirm.tsx'
import { lazily } from '../../parts/lazily.tsx'
import { PageHead } from '../../parts/page-head.tsx'
import { Panel } from '../../parts/panel.tsx'
import { Failure, Loading, Stale } from '../../parts/states.tsx'
import { tell } from '../../parts/use-write.ts'
import { When } from '../../parts/when.tsx'
import { Actor } from './actor.tsx'
import { HistoryPanel } from './history-panel.tsx'
import { objectName } from './object-words.ts'
import classes from './objects.module.css'
import { PropertiesPanel } from './properties-panel.tsx'
import { RelationshipsPanel } from './relationships-panel.tsx'
import { SuggestionsPanel } from './suggestions-panel.tsx'

const ObjectGraph = lazily(() => import('./object-graph.tsx').then((module) => module.ObjectGraph))
const route = getRouteApi('/projects/$projectId/objects/$objectId')

export function ObjectPage() {
  const { projectId, objectId } = route.useParams()
  const object = useQuery(objectQuery(projectId, objectId))
  const mayWrite = useRole(projectId) !== 'viewer'
  if (object.isPending) return <Loading lines={8} />
  if (object.error instanceof ApiError && object.error.status === 404) return <Unknown />
  if (!object.data)
    return <Failure what="The object could not be read." error={object.error} onRetry={() => void object.refetch()} />
  const isOpen = mayWrite && object.data.deleted_at === null
  return (
    <>
      {object.isError && <Stale onRetry={() => void object.refetch()} />}
      <Head projectId={projectId} object={object.data} isOpen={isOpen} />
      <div className={classes.columns} key={objectId}>
        <div>
          <PropertiesPanel projectId={projectId} object={object.data} isOpen={isOpen} />
          <HistoryPanel projectId={projectId} objectId={objectId} />
        </div>
        <div className={classes.aside}>
          <SuggestionsPanel projectId={projectId} objectId={objectId} />
          <section className={classes.panel} aria-label="Around it">
            <Panel name="The graph">
              <ObjectGraph projectId={projectId} object={object.data} />
            </Panel>
          </section>
          <RelationshipsPanel projectId={projectId} object={object.data} isOpen={isOpen} />
        </div>
      </div>
    </>
  )
}

function Head({ projectId, object, isOpen }: { projectId: string; object: GraphObject; isOpen: boolean }) {
  const name = objectName(object)
  const client = useQueryClient()
  const navigate = useNavigate()
  const [question, setQuestion] = useState<Question | null>(null)
  const askDelete = (): void =>
    setQuestion({
      title: `Delete ${name}?`,
      text: 'Its history stays, and its key is free again. Agents may react to the deletion.',
      action: 'Delete',
      refusal: 'Keep it',
      onYes: async () => {
        await remove(objectPath(projectId, object.id))
        await client.invalidateQueries({ queryKey: ['object', projectId] })
        tell(`${name} is deleted.`)
        await navigate({ to: '/projects/$projectId/objects', params: { projectId } })
      },
    })
  return (
    <PageHead
      name={name}
      title={
        <div>
          <Link to="/projects/$projectId/objects" params={{ projectId }} className="dim">
            Objects
          </Link>
          <Group gap="sm">
            <Title order={1}>{name}</Title>
            <Badge variant="default" tt="none">
              {object.type}
            </Badge>
            {object.deleted_at !== null && (
              <Badge color="red" variant="light" tt="none">
                deleted
              </Badge>
            )}
          </Group>
          <Text size="sm" className={`dim ${classes.by}`}>
            Version {object.version}, changed <When at={object.updated_at} /> by{' '}
            <Actor projectId={projectId} type={object.actor_type} id={object.actor_id} />
          </Text>
        </div>
      }
    >
      {isOpen && (
        <Button
          size="xs"
          variant="light"
          color="red"
          leftSection={<Trash2 size={13} aria-hidden />}
          onClick={askDelete}
        >
          Delete
        </Button>
      )}
      <Confirm question={question} onClose={() => setQuestion(null)} />
    </PageHead>
  )
}
