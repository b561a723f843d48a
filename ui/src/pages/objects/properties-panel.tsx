// The properties of an object, to read and to edit.
import { Button, Group, Stack, Text, Title } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { Pencil } from 'lucide-react'
import { useState } from 'react'
import type { GraphObject } from '../../../../src/kernel/object.ts'
import { ApiError, patch } from '../../api/client.ts'
import { issuesOf } from '../../api/issues.ts'
import { objectPath, objectQuery } from '../../api/objects.ts'
import { Problem } from '../../parts/problem.tsx'
import { useWrite } from '../../parts/use-write.ts'
import { Value } from '../../parts/value.tsx'
import { changesOf } from './draft.ts'
import classes from './objects.module.css'
import { PropertiesEditor } from './properties-editor.tsx'
import { useDraft } from './use-draft.ts'

interface Props {
  projectId: string
  object: GraphObject
  isOpen: boolean
}

export function PropertiesPanel({ projectId, object, isOpen }: Props) {
  const [isEdited, setIsEdited] = useState(false)
  return (
    <section className={classes.panel} aria-label="Properties">
      <div className={classes.head}>
        <Title order={2}>Properties</Title>
        {isOpen && !isEdited && (
          <Button
            size="compact-sm"
            variant="default"
            leftSection={<Pencil size={12} aria-hidden />}
            onClick={() => setIsEdited(true)}
          >
            Edit
          </Button>
        )}
      </div>
      {isEdited ? (
        <Edited projectId={projectId} object={object} onClose={() => setIsEdited(false)} />
      ) : (
        <Properties of={object.properties} />
      )}
    </section>
  )
}

export function Properties({ of }: { of: Record<string, unknown> }) {
  const entries = Object.entries(of)
  if (entries.length === 0) return <Text className="dim">It has none.</Text>
  return (
    <dl className={classes.properties}>
      {entries.map(([name, value]) => (
        <div key={name} style={{ display: 'contents' }}>
          <dt>{name}</dt>
          <dd>{typeof value === 'object' && value !== null ? <Value of={value} /> : String(value)}</dd>
        </div>
      ))}
    </dl>
  )
}

/**
 * The draft begins with the properties that were shown then, and only what differs from them is sent. A save is refused
 * if somebody changed the object since, until the person has seen so.
 */
function Edited({ projectId, object, onClose }: { projectId: string; object: GraphObject; onClose: () => void }) {
  const client = useQueryClient()
  const [first] = useState(object)
  const [version, setVersion] = useState(object.version)
  const { read, refuse, refuseAt, editor } = useDraft(first.properties)
  const { write, isBusy, problem, error } = useWrite({ reads: [['object', projectId]], fields: ['properties'] })
  const isMoved = error instanceof ApiError && error.code === 'CONFLICT'
  const save = async (): Promise<void> => {
    const properties = read()
    if (properties === null) return
    const { changed, missing } = changesOf(first.properties, properties)
    if (missing.length > 0) {
      refuse(`A change keeps the properties that it does not name. Set ${missing.join(', ')} to null instead.`)
      return
    }
    const isDone = await write(async () => {
      try {
        const body = { properties: changed, expected_version: version }
        const saved = await patch<GraphObject>(objectPath(projectId, object.id), body)
        client.setQueryData(objectQuery(projectId, object.id).queryKey, saved)
      } catch (refusal) {
        refuseAt(issuesOf(refusal))
        throw refusal
      }
    }, 'The object is saved.')
    if (isDone) onClose()
  }
  const goOnFromNewest = async (): Promise<void> => {
    const newest = await client.fetchQuery({ ...objectQuery(projectId, object.id), staleTime: 0 })
    setVersion(newest.version)
  }
  return (
    <form
      aria-label="Edit the properties"
      onSubmit={(event) => {
        event.preventDefault()
        void save()
      }}
    >
      <Stack gap="sm">
        <Problem text={problem}>
          {isMoved && (
            <Group mt="xs">
              <Button size="compact-sm" variant="default" onClick={() => void write(goOnFromNewest)}>
                Keep my text, save it over the newest version
              </Button>
            </Group>
          )}
        </Problem>
        <PropertiesEditor {...editor} />
        <Group gap="xs">
          <Button size="xs" type="submit" loading={isBusy}>
            Save
          </Button>
          <Button size="xs" variant="default" onClick={onClose}>
            Close
          </Button>
        </Group>
      </Stack>
    </form>
  )
}
