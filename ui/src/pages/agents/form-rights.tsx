// The rights of the agent, and its place in the organisation.
import { Checkbox, Select, Stack, TagsInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import type { AgentDefinition } from '../../../../src/kernel/agent.ts'
import { objectTypesQuery } from '../../api/agents.ts'
import { everyAgent, orgQuery } from '../../api/organisation.ts'
import { splitNames } from './agent-draft.ts'
import { FormSection, type SectionProps } from './form-section.tsx'

const MOST_SHOWN = 50

const MODES: Record<AgentDefinition['execution_mode'], string> = {
  execute: 'It changes objects and calls tools itself.',
  suggest: 'It suggests each change, and each call with an effect; people decide in the inbox.',
  hybrid: 'It chooses for each change and each call whether to make or to suggest it.',
}

export function Rights({ form, projectId }: SectionProps) {
  const { execution_mode, capabilities, require_approval, tools, steps } = form.values
  const nameable = [...new Set([...tools, ...steps.flatMap((step) => (step.hasOwnTools ? step.tools : []))])]
  const types = useQuery({ ...objectTypesQuery(projectId), enabled: !capabilities.isForAllTypes })
  return (
    <FormSection title="Rights">
      <Select
        label="Execution mode"
        description={MODES[execution_mode]}
        inputWrapperOrder={['label', 'input', 'description', 'error']}
        data={Object.keys(MODES)}
        allowDeselect={false}
        w={220}
        {...form.getInputProps('execution_mode')}
      />
      <TagsInput
        label="Ask before these calls"
        description="Tools of this agent whose calls wait until somebody approves them in the inbox. Also mcp:server/*."
        placeholder={require_approval.length === 0 ? 'None' : ''}
        data={nameable}
        value={require_approval}
        onChange={(values) => form.setFieldValue('require_approval', splitNames(values, require_approval))}
        error={form.errors.require_approval}
        data-path="require_approval"
      />
      <Stack gap="xs" role="group" aria-label="Capabilities">
        <Checkbox
          size="xs"
          label="May create objects"
          description="It adds objects and relationships."
          {...form.getInputProps('capabilities.canCreateObjects', { type: 'checkbox' })}
        />
        <Checkbox
          size="xs"
          label="May update objects"
          description="It changes properties. Every version is kept."
          {...form.getInputProps('capabilities.canUpdateObjects', { type: 'checkbox' })}
        />
        <Checkbox
          size="xs"
          label="May delete objects"
          description="It deletes objects, with the relationships from and to them. Their history stays."
          {...form.getInputProps('capabilities.canDeleteObjects', { type: 'checkbox' })}
        />
        <Checkbox
          size="xs"
          label="Objects of all types"
          description="All this holds for every type of object, else only for those that you name."
          {...form.getInputProps('capabilities.isForAllTypes', { type: 'checkbox' })}
        />
      </Stack>
      {!capabilities.isForAllTypes && (
        <TagsInput
          label="Only these types"
          description="Spelled exactly. An empty list: it may change no object."
          data={types.data ?? []}
          value={capabilities.allowedObjectTypes}
          onChange={(values) =>
            form.setFieldValue('capabilities.allowedObjectTypes', splitNames(values, capabilities.allowedObjectTypes))
          }
          error={form.errors['capabilities.allowedObjectTypes']}
          data-path="capabilities.allowedObjectTypes"
        />
      )}
    </FormSection>
  )
}

export function Place({ form, projectId, agentId }: SectionProps & { agentId: string | null }) {
  const tree = useQuery({ ...orgQuery(projectId), refetchInterval: false })
  const seniors = everyAgent(tree.data ?? []).filter(({ id }) => id !== agentId)
  const skills = [...new Set(seniors.flatMap(({ competencies }) => competencies))].toSorted()
  return (
    <FormSection title="Place in the organisation">
      <Select
        label="Senior"
        description="The agent that is told when this one is stuck, bored or short of tokens."
        placeholder="None"
        limit={MOST_SHOWN}
        data={seniors.map(({ id, name }) => ({ value: id, label: name }))}
        searchable
        selectFirstOptionOnChange
        clearable
        {...form.getInputProps('senior_id')}
      />
      <TagsInput
        label="Competencies"
        description="Its skills in a word or two each. Tasks are delegated by them."
        data={skills}
        value={form.values.competencies}
        onChange={(values) => form.setFieldValue('competencies', splitNames(values, form.values.competencies))}
        error={form.errors.competencies}
        data-path="competencies"
      />
    </FormSection>
  )
}
