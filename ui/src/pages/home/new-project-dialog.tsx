import { TextInput } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import type { Project } from '../../../../src/kernel/project.ts'
import { post } from '../../api/client.ts'
import { meQuery, projectsQuery } from '../../api/queries.ts'
import { FormDialog } from '../../parts/form-dialog.tsx'
import { useWrite } from '../../parts/use-write.ts'

export function NewProjectDialog({ onClose }: { onClose: () => void }) {
  const client = useQueryClient()
  const navigate = useNavigate()
  const { isBusy, problem, write } = useWrite()
  const [name, setName] = useState('')
  const create = (): void =>
    void write(async () => {
      const project = await post<Project>('/api/projects', { name })
      await client.invalidateQueries({ queryKey: projectsQuery.queryKey })
      void client.invalidateQueries({ queryKey: meQuery.queryKey })
      await navigate({ to: '/projects/$projectId/agents', params: { projectId: project.id } })
    })
  return (
    <FormDialog title="New project" action="Create" write={{ isBusy, problem }} onSubmit={create} onClose={onClose}>
      <TextInput
        label="Name"
        required
        maxLength={200}
        data-autofocus
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
      />
    </FormDialog>
  )
}
