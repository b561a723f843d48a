import { Autocomplete, Button, Group, Select, Text, TextInput } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import type { Settings } from '../../../../src/kernel/project.ts'
import { patch } from '../../api/client.ts'
import { projectPath } from '../../api/queries.ts'
import { providersQuery, settingsQuery } from '../../api/settings.ts'
import { useMe } from '../../app/gate.tsx'
import { useRole } from '../../app/role.ts'
import { Problem } from '../../parts/problem.tsx'
import { Failure, Loading } from '../../parts/states.tsx'
import { tell, useWrite } from '../../parts/use-write.ts'
import { Section } from './section.tsx'

const MODEL_FIELDS = ['default_model.provider', 'default_model.name']

export function DefaultModel({ projectId }: { projectId: string }) {
  const settings = useQuery(settingsQuery(projectId))
  const isAdmin = useRole(projectId) === 'admin'
  return (
    <Section name="Default model" about="The model of agents that name none, and of the supervisor systems.">
      {settings.isPending && <Loading lines={2} />}
      {settings.isError && !settings.data && (
        <Failure
          what="The settings could not be read."
          error={settings.error}
          onRetry={() => void settings.refetch()}
        />
      )}
      {settings.data &&
        (isAdmin ? (
          <ModelForm projectId={projectId} model={settings.data.default_model} />
        ) : (
          <Text size="sm">
            {settings.data.default_model.name} of {settings.data.default_model.provider}
          </Text>
        ))}
    </Section>
  )
}

function ModelForm({ projectId, model }: { projectId: string; model: Settings['default_model'] }) {
  const me = useMe()
  const client = useQueryClient()
  const providers = useQuery({ ...providersQuery, enabled: me.instance_admin })
  const { isBusy, problem, refused, write } = useWrite({ fields: MODEL_FIELDS })
  const [chosen, setChosen] = useState(model)
  const isSame = chosen.provider === model.provider && chosen.name === model.name
  const prices = providers.data?.items.find(({ name }) => name === chosen.provider)?.prices ?? {}
  const save = (): void =>
    void write(async () => {
      const settings = await patch<Settings>(projectPath(projectId, '/settings'), { default_model: chosen })
      client.setQueryData(settingsQuery(projectId).queryKey, settings)
      tell(`${chosen.name} of ${chosen.provider} is the default model.`)
    })
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        save()
      }}
    >
      <Problem text={problem} />
      <Group align="flex-end" gap="sm">
        {me.instance_admin ? (
          <Select
            label="Provider"
            size="xs"
            allowDeselect={false}
            data={providers.data?.items.map(({ name }) => name) ?? [model.provider]}
            value={chosen.provider}
            error={refused['default_model.provider']}
            onChange={(provider) => provider && setChosen({ ...chosen, provider })}
          />
        ) : (
          <TextInput
            label="Provider"
            size="xs"
            required
            value={chosen.provider}
            error={refused['default_model.provider']}
            onChange={(event) => setChosen({ ...chosen, provider: event.currentTarget.value })}
          />
        )}
        <Autocomplete
          label="Model"
          size="xs"
          required
          w={240}
          data={Object.keys(prices)}
          value={chosen.name}
          error={refused['default_model.name']}
          onChange={(name) => setChosen({ ...chosen, name })}
        />
        <Button size="xs" type="submit" disabled={isSame} loading={isBusy}>
          Save
        </Button>
      </Group>
    </form>
  )
}
