// The relationships from and to an object. People add and remove them here.
import { ActionIcon, Button, Text, Title } from '@mantine/core'
import { useInfiniteQuery, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { MoveLeft, MoveRight, Plus, X } from 'lucide-react'
import { useState } from 'react'
import type { GraphObject, Relationship } from '../../../../src/kernel/object.ts'
import { remove } from '../../api/client.ts'
import { objectQuery, relationshipsQuery } from '../../api/objects.ts'
import { projectPath } from '../../api/queries.ts'
import { Confirm, type Question } from '../../parts/confirm.tsx'
import { oneLine } from '../../parts/figures.ts'
import { More } from '../../parts/more.tsx'
import { Failure, Loading } from '../../parts/states.tsx'
import { tell } from '../../parts/use-write.ts'
import { AddRelationship } from './add-relationship.tsx'
import { objectName } from './object-words.ts'
import classes from './objects.module.css'

interface Props {
  projectId: string
  object: GraphObject
  isOpen: boolean
}

export function RelationshipsPanel({ projectId, object, isOpen }: Props) {
  const found = useInfiniteQuery(relationshipsQuery(projectId, object.id))
  const [adds, setAdds] = useState(false)
  const client = useQueryClient()
  const [question, setQuestion] = useState<Question | null>(null)
  const askRemove = ({ id }: Relationship): void =>
    setQuestion({
      title: 'Remove this relationship?',
      text: 'Both objects stay as they are.',
      action: 'Remove',
      refusal: 'Keep it',
      onYes: async () => {
        await remove(projectPath(projectId, `/relationships/${id}`))
        await client.invalidateQueries({ queryKey: ['object', projectId] })
        tell('The relationship is removed.')
      },
    })
  const all = found.data?.pages.flatMap(({ items }) => items) ?? []
  return (
    <section className={classes.panel} aria-label="Relationships">
      <div className={classes.head}>
        <Title order={2}>Relationships</Title>
        {isOpen && (
          <Button
            size="compact-sm"
            variant="default"
            leftSection={<Plus size={13} aria-hidden />}
            onClick={() => setAdds(true)}
          >
            Add relationship
          </Button>
        )}
      </div>
      {found.isPending && <Loading lines={2} />}
      {found.isError && (
        <Failure what="The relationships could not be read." error={found.error} onRetry={() => void found.refetch()} />
      )}
      {found.data && all.length === 0 && <Text className="dim">It is related to nothing.</Text>}
      <ul className={classes.list}>
        {all.map((each) => (
          <Related
            key={each.id}
            projectId={projectId}
            objectId={object.id}
            relationship={each}
            onRemove={isOpen ? () => askRemove(each) : null}
          />
        ))}
      </ul>
      <More list={found} />
      {adds && <AddRelationship projectId={projectId} object={object} onClose={() => setAdds(false)} />}
      <Confirm question={question} onClose={() => setQuestion(null)} />
    </section>
  )
}

function Related(props: {
  projectId: string
  objectId: string
  relationship: Relationship
  onRemove: (() => void) | null
}) {
  const { projectId, objectId, relationship, onRemove } = props
  const isFrom = relationship.from_id === objectId
  const otherId = isFrom ? relationship.to_id : relationship.from_id
  const other = useQuery(objectQuery(projectId, otherId))
  const name = other.data ? objectName(other.data) : otherId.slice(-8)
  const Arrow = isFrom ? MoveRight : MoveLeft
  return (
    <li className={classes.line}>
      <span className="cut" title={relationship.type}>
        {oneLine(relationship.type, 40)}
      </span>
      <Arrow size={14} aria-hidden style={{ flex: 'none' }} />
      <span className="visually-hidden">{isFrom ? 'leads to' : 'comes from'}</span>
      <span className="cut" style={{ flex: 1 }}>
        <Link to="/projects/$projectId/objects/$objectId" params={{ projectId, objectId: otherId }}>
          {name}
        </Link>
        {other.data && <span className="dim"> {oneLine(other.data.type, 40)}</span>}
      </span>
      {onRemove && (
        <ActionIcon
          variant="subtle"
          color="gray"
          size="sm"
          aria-label={`Remove the relationship ${relationship.type} with ${name}`}
          onClick={onRemove}
        >
          <X size={14} aria-hidden />
        </ActionIcon>
      )}
    </li>
  )
}
