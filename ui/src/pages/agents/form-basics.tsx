// The name and the role of the agent, its prompt and its model.
import { Autocomplete, NumberInput, SegmentedControl, SimpleGrid, Text, Textarea, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import type { Agent } from '../../../../src/kernel/agent.ts'
import type { Provider } from '../../../../src/kernel/provider.ts'
import { promptIdsQuery, providersQuery, settingsQuery } from '../../api/agents.ts'
import { newestAgentsQuery } from '../../api/queries.ts'
import { FormSection, type SectionProps } from './form-section.tsx'

const MOST_SHOWN = 50

export function Basics({ form, projectId }: SectionProps) {
  const { isFromLibrary } = form.values
  const prompts = useQuery({ ...promptIdsQuery(projectId), enabled: isFromLibrary })
  return (
    <FormSection>
      <SimpleGrid cols={{ base: 1, sm: 2 }}>
        <TextInput label="Name" required maxLength={200} autoComplete="off" {...form.getInputProps('name')} />
        <TextInput
          label="Role"
          description="In a few words. The model and other agents read it."
          inputWrapperOrder={['label', 'input', 'description', 'error']}
          maxLength={1_000}
          autoComplete="off"
          {...form.getInputProps('role')}
        />
      </SimpleGrid>
      <SegmentedControl
        aria-label="Instructions"
        size="xs"
        w="fit-content"
        data={[
          { value: 'own', label: 'Own text' },
          { value: 'library', label: 'From the library' },
        ]}
        value={isFromLibrary ? 'library' : 'own'}
        onChange={(value) => form.setFieldValue('isFromLibrary', value === 'library')}
      />
      {isFromLibrary ? (
        <Autocomplete
          label="Prompt"
          description="A prompt of the library. It is read again at each run."
          data={prompts.data ?? []}
          limit={MOST_SHOWN}
          {...form.getInputProps('prompt_id')}
        />
      ) : (
        <Textarea
          label="Prompt"
          description="What the agent is and does. Its input is added at each run."
          autosize
          minRows={4}
          maxRows={24}
          {...form.getInputProps('prompt')}
        />
      )}
    </FormSection>
  )
}

export function ModelFields({ form, projectId }: SectionProps) {
  const { provider } = form.values.model
  const providers = useQuery(providersQuery)
  const agents = useQuery(newestAgentsQuery(projectId))
  const settings = useQuery(settingsQuery(projectId))
  const standard = settings.data?.default_model
  const known = modelsAmong(providers.data ?? [], agents.data?.items ?? [])
  const names = [...new Set([...(providers.data ?? []).map(({ name }) => name), ...known.map((each) => each.provider)])]
  const ofProvider = known.filter((each) => provider === '' || each.provider === provider)
  const choose = (chosen: string): void => {
    const found = provider === '' ? known.find((each) => `${each.provider}/${each.name}` === chosen) : undefined
    form.setFieldValue('model.name', found ? found.name : chosen)
    if (found) form.setFieldValue('model.provider', found.provider)
  }
  return (
    <FormSection title="Model">
      <Text size="sm" className="dim">
        {standard
          ? `Left empty, it works with the default model of the project: ${standard.provider}/${standard.name}.`
          : 'Left empty, it works with the default model of the project.'}
      </Text>
      <SimpleGrid cols={{ base: 1, sm: 2 }}>
        <Autocomplete
          label="Provider"
          data={names.toSorted()}
          limit={MOST_SHOWN}
          {...form.getInputProps('model.provider')}
        />
        <Autocomplete
          label="Model"
          placeholder="As the provider spells it"
          data={ofProvider.map((each) => (provider === '' ? `${each.provider}/${each.name}` : each.name))}
          limit={MOST_SHOWN}
          {...form.getInputProps('model.name')}
          onChange={choose}
        />
      </SimpleGrid>
      <SimpleGrid cols={{ base: 1, sm: 3 }}>
        <NumberInput
          label="Temperature"
          placeholder="Of the provider"
          min={0}
          max={2}
          step={0.1}
          {...form.getInputProps('model.temperature')}
        />
        <NumberInput
          label="Longest answer"
          placeholder="4096"
          suffix=" tokens"
          min={1}
          {...form.getInputProps('model.max_output_tokens')}
        />
        <NumberInput
          label="Longest request"
          placeholder="No limit"
          suffix=" tokens"
          min={256}
          {...form.getInputProps('model.context_tokens')}
        />
      </SimpleGrid>
    </FormSection>
  )
}

interface KnownModel {
  provider: string
  name: string
}

/** The models that have a price, and those that other agents work with. */
function modelsAmong(providers: readonly Provider[], agents: readonly Agent[]): KnownModel[] {
  const priced = providers.flatMap(({ name: provider, prices }) =>
    Object.keys(prices).map((name) => ({ provider, name })),
  )
  const used = agents.flatMap(({ model }) => (model ? [{ provider: model.provider, name: model.name }] : []))
  const unique = new Map([...priced, ...used].map((each) => [`${each.provider}/${each.name}`, each]))
  return [...unique.entries()].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, each]) => each)
}
