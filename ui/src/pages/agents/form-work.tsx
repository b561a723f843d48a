// How the agent works: alone, step by step, in a loop or as a flow; with which tools, and within which limits.
import {
  ActionIcon,
  Autocomplete,
  Button,
  Group,
  NumberInput,
  Select,
  SimpleGrid,
  Stack,
  Switch,
  Text,
  Textarea,
} from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { ArrowDown, ArrowUp, Plus, Trash2 } from 'lucide-react'
import type { AgentDefinition } from '../../../../src/kernel/agent.ts'
import { flowChoicesQuery, settingsQuery } from '../../api/agents.ts'
import { newKey } from '../../api/client.ts'
import classes from './agents.module.css'
import { FormSection, type SectionProps } from './form-section.tsx'
import { ToolsField } from './tools-field.tsx'

/** The description below the input, so that inputs side by side stand in a row. */
const BELOW: ('label' | 'input' | 'description' | 'error')[] = ['label', 'input', 'description', 'error']

const WAYS: Record<AgentDefinition['flow_type'], string> = {
  single: 'The model works until it is done.',
  sequential: 'The model works through the steps below, one after the other.',
  loop: 'The model repeats its work until it calls finish_loop.',
  flow: 'Each run is a run of the flow; the model and the prompt are not needed.',
}

export function Work({ form, projectId }: SectionProps) {
  const { flow_type, tools } = form.values
  return (
    <FormSection title="Work">
      <Select
        label="How it works"
        description={WAYS[flow_type]}
        inputWrapperOrder={BELOW}
        data={Object.keys(WAYS)}
        allowDeselect={false}
        w={220}
        {...form.getInputProps('flow_type')}
      />
      {flow_type === 'sequential' && <Steps form={form} projectId={projectId} />}
      {flow_type === 'loop' && (
        <NumberInput label="Most rounds" placeholder="10" min={1} w={220} {...form.getInputProps('max_iterations')} />
      )}
      {flow_type === 'flow' && <FlowField form={form} projectId={projectId} />}
      <ToolsField
        projectId={projectId}
        label="Tools"
        description="Pick them from the list, or type their names."
        value={tools}
        error={form.errors.tools}
        path="tools"
        onChange={(values) => form.setFieldValue('tools', values)}
      />
    </FormSection>
  )
}

function FlowField({ form, projectId }: SectionProps) {
  const flows = useQuery(flowChoicesQuery(projectId))
  const titles = new Map(flows.data?.map(({ name, title }) => [name, title]))
  const group = (isStored: boolean): string[] =>
    (flows.data ?? []).filter(({ id }) => (id !== null) === isStored).map(({ name }) => name)
  return (
    <Autocomplete
      label="Flow"
      description="A flow of this project, or a template."
      data={[
        { group: 'Flows', items: group(true) },
        { group: 'Templates', items: group(false) },
      ]}
      renderOption={({ option }) => (
        <div>
          <Text size="sm">{option.value}</Text>
          <Text size="xs" className="dim">
            {titles.get(option.value)}
          </Text>
        </div>
      )}
      {...form.getInputProps('flow')}
    />
  )
}

function Steps({ form, projectId }: SectionProps) {
  const { steps } = form.values
  return (
    <Stack gap="sm">
      {steps.map((step, index) => (
        <div key={step.key} className={classes.step}>
          <Textarea
            label={`Step ${index + 1}`}
            autosize
            minRows={2}
            maxRows={12}
            {...form.getInputProps(`steps.${index}.prompt`)}
          />
          <Group justify="space-between" mt="xs">
            <Switch
              label="Only some tools"
              size="xs"
              {...form.getInputProps(`steps.${index}.hasOwnTools`, { type: 'checkbox' })}
            />
            <StepButtons form={form} index={index} />
          </Group>
          {step.hasOwnTools && (
            <ToolsField
              projectId={projectId}
              label={`Step ${index + 1} uses only`}
              value={step.tools}
              error={form.errors[`steps.${index}.tools`]}
              path={`steps.${index}.tools`}
              onChange={(tools) => form.setFieldValue(`steps.${index}.tools`, tools)}
            />
          )}
        </div>
      ))}
      {form.errors.steps && (
        <Text size="sm" c="var(--failed)">
          Steps: {form.errors.steps}
        </Text>
      )}
      <Button
        size="xs"
        variant="default"
        w="fit-content"
        leftSection={<Plus size={13} aria-hidden />}
        onClick={() => form.insertListItem('steps', { key: newKey(), prompt: '', hasOwnTools: false, tools: [] })}
      >
        Add a step
      </Button>
    </Stack>
  )
}

function StepButtons({ form, index }: Pick<SectionProps, 'form'> & { index: number }) {
  const step = `step ${index + 1}`
  const move = (to: number): void => form.reorderListItem('steps', { from: index, to })
  return (
    <Group gap={4}>
      <ActionIcon
        variant="subtle"
        disabled={index === 0}
        aria-label={`Move ${step} up`}
        onClick={() => move(index - 1)}
      >
        <ArrowUp size={14} aria-hidden />
      </ActionIcon>
      <ActionIcon
        variant="subtle"
        disabled={index === form.values.steps.length - 1}
        aria-label={`Move ${step} down`}
        onClick={() => move(index + 1)}
      >
        <ArrowDown size={14} aria-hidden />
      </ActionIcon>
      <ActionIcon
        variant="subtle"
        color="red"
        aria-label={`Remove ${step}`}
        onClick={() => form.removeListItem('steps', index)}
      >
        <Trash2 size={14} aria-hidden />
      </ActionIcon>
    </Group>
  )
}

export function Limits({ form, projectId }: SectionProps) {
  const settings = useQuery(settingsQuery(projectId))
  return (
    <FormSection title="Limits">
      <SimpleGrid cols={{ base: 1, sm: 3 }}>
        <NumberInput
          label="Step limit"
          inputWrapperOrder={BELOW}
          description="Model calls of a run; then it pauses with a summary."
          placeholder="No limit"
          min={1}
          {...form.getInputProps('max_steps')}
        />
        <NumberInput
          label="Timeout"
          inputWrapperOrder={BELOW}
          description="Seconds of a run; then it pauses with a summary."
          placeholder="No limit"
          min={0.001}
          {...form.getInputProps('default_timeout')}
        />
        <NumberInput
          label="Budget"
          inputWrapperOrder={BELOW}
          description="Tokens of all its runs together; then it pauses."
          placeholder="No limit"
          min={0}
          thousandSeparator=","
          {...form.getInputProps('token_allocation')}
        />
      </SimpleGrid>
      <Text size="sm" className="dim">
        The same tool call {settings.data?.doom_loop_warn ?? '…'} times in a row is refused, and{' '}
        {settings.data?.doom_loop_stop ?? '…'} times in a row ends the run as a doom loop. These limits are{' '}
        <Link
          to="/projects/$projectId/settings/$section"
          params={{ projectId, section: 'limits' }}
          className={classes.inText}
        >
          settings of the project
        </Link>
        .
      </Text>
    </FormSection>
  )
}
