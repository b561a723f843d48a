import { Autocomplete, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import type { GraphObject } from '../../../../src/kernel/object.ts'
import { post } from '../../api/client.ts'
import { issuesOf } from '../../api/issues.ts'
import { objectTypesQuery } from '../../api/objects.ts'
import { projectPath } from '../../api/queries.ts'
import { FormDialog } from '../../parts/form-dialog.tsx'
import { useWrite } from '../../parts/use-write.ts'
import { PropertiesEditor } from './properties-editor.tsx'
import { useDraft } from './use-draft.ts'

const NONE = {}

export function NewObject({
  projectId,
  type: given,
  onClose,
}: {
  projectId: string
  type: string
  onClose: () => void
}) {
  const navigate = useNavigate()
  const types = useQuery(objectTypesQuery(projectId))
  const [type, setType] = useState(given)
  const [key, setKey] = useState('')
  const { read, refuseAt, editor } = useDraft(NONE)
  const { write, refused, ...state } = useWrite({
    reads: [['object', projectId, 'list']],
    fields: ['type', 'key', 'properties'],
  })
  const create = async (): Promise<void> => {
    const properties = read()
    if (properties === null) return
    await write(async () => {
      try {
        const body = { type, ...(key === '' ? {} : { key }), properties }
        const { id } = await post<GraphObject>(projectPath(projectId, '/objects'), body)
        await navigate({ to: '/projects/$projectId/objects/$objectId', params: { projectId, objectId: id } })
      } catch (problem) {
        refuseAt(issuesOf(problem))
        throw problem
      }
    }, 'The object is created.')
  }
  return (
    <FormDialog title="New object" action="Create" write={state} onSubmit={() => void create()} onClose={onClose}>
      <Autocomplete
        label="Type"
        placeholder="Person"
        required
        maxLength={200}
        data={types.data?.types.map((each) => each.type) ?? []}
        value={type}
        error={refused.type}
        onChange={setType}
        data-autofocus
      />
      <TextInput
        label="Key"
        description="May be left out. It is unique within its type."
        maxLength={500}
        value={key}
        error={refused.key}
        onChange={(event) => setKey(event.currentTarget.value)}
      />
      <PropertiesEditor {...editor} />
    </FormDialog>
  )
}
