// The trigger of the agent.
import {
  Autocomplete,
  Checkbox,
  Group,
  Select,
  SimpleGrid,
  Stack,
  Switch,
  TagsInput,
  Text,
  TextInput,
} from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import type { AgentDefinition } from '../../../../src/kernel/agent.ts'
import { objectTypesQuery } from '../../api/agents.ts'
import { splitNames } from './agent-draft.ts'
import { FormSection, type SectionProps } from './form-section.tsx'
import { NextTimes, useNextTimes } from './next-times.tsx'

const TRIGGERS: Record<AgentDefinition['trigger_type'], string> = {
  manual: 'People, programs, tasks and other agents start it.',
  schedule: 'It starts at the times of its schedule.',
  webhook: 'A request to one of its hooks starts it. Hooks are made on the page of the agent.',
  reaction: 'A change of an object starts it.',
}
const ZONES = ['UTC', ...Intl.supportedValuesOf('timeZone').filter((zone) => zone !== 'UTC')]
const MOST_ZONES = 50

export function TriggerFields(props: SectionProps) {
  const { form } = props
  const { trigger_type } = form.values
  return (
    <FormSection title="Start">
      <Select
        label="Trigger"
        description={TRIGGERS[trigger_type]}
        inputWrapperOrder={['label', 'input', 'description', 'error']}
        data={Object.keys(TRIGGERS)}
        allowDeselect={false}
        w={220}
        {...form.getInputProps('trigger_type')}
      />
      {trigger_type === 'schedule' && <ScheduleFields {...props} />}
      {trigger_type === 'reaction' && <ReactionFields {...props} />}
    </FormSection>
  )
}

const CATCH_UP = [
  { value: 'once', label: 'one run for all that were missed' },
  { value: 'skip', label: 'none' },
  { value: 'all', label: 'every run, the last 100 at most' },
]

function ScheduleFields({ form, projectId }: SectionProps) {
  const { cron_schedule, timezone } = form.values
  const { times, problem } = useNextTimes(projectId, cron_schedule, timezone)
  const problemAt = (path: string) => form.errors[path] ?? (problem?.path === path ? problem.message : undefined)
  return (
    <SimpleGrid cols={{ base: 1, sm: 2 }}>
      <Stack>
        <TextInput
          label="Schedule"
          description="Minute, hour, day of the month, month, day of the week."
          placeholder="0 9 * * 1-5"
          autoComplete="off"
          classNames={{ input: 'mono' }}
          {...form.getInputProps('cron_schedule')}
          error={problemAt('cron_schedule')}
        />
        <Autocomplete
          label="Time zone"
          data={ZONES}
          limit={MOST_ZONES}
          {...form.getInputProps('timezone')}
          error={problemAt('timezone')}
        />
        <Select
          label="Runs missed in an outage"
          data={CATCH_UP}
          allowDeselect={false}
          {...form.getInputProps('catch_up')}
        />
      </Stack>
      <NextTimes times={times} timezone={timezone} />
    </SimpleGrid>
  )
}

const CONCURRENCY = [
  { value: 'skip', label: 'pass over events of the version it works on' },
  { value: 'parallel', label: 'start a run for each event' },
]

function ReactionFields({ form, projectId }: SectionProps) {
  const { reaction_config } = form.values
  const types = useQuery(objectTypesQuery(projectId))
  return (
    <>
      <TagsInput
        label="Object types"
        description="Spelled exactly. * stands for all types."
        data={['*', ...(types.data ?? [])]}
        value={reaction_config.objectTypes}
        onChange={(values) =>
          form.setFieldValue('reaction_config.objectTypes', splitNames(values, reaction_config.objectTypes))
        }
        error={form.errors['reaction_config.objectTypes']}
        data-path="reaction_config.objectTypes"
      />
      <Checkbox.Group label="Events" {...form.getInputProps('reaction_config.events')}>
        <Group mt={4}>
          {['created', 'updated', 'deleted'].map((event) => (
            <Checkbox key={event} size="xs" value={event} label={event} />
          ))}
        </Group>
      </Checkbox.Group>
      <Switch
        size="xs"
        label="Ignore changes that it made itself"
        {...form.getInputProps('reaction_config.ignoreSelfTriggered', { type: 'checkbox' })}
      />
      <Switch
        size="xs"
        label="Ignore changes that any agent made"
        {...form.getInputProps('reaction_config.ignoreAgentTriggered', { type: 'checkbox' })}
      />
      <Select
        label="While it works on the object"
        data={CONCURRENCY}
        allowDeselect={false}
        {...form.getInputProps('reaction_config.concurrencyStrategy')}
      />
      <Text size="sm" className="dim">
        The page of the agent has the log of the events that it was given.
      </Text>
    </>
  )
}
