// The fields that a new task and an edited one have in common.
import { Select, Textarea, TextInput } from '@mantine/core'
import type { OrgAgent } from '../../../../src/kernel/org.ts'
import type { Task } from '../../../../src/kernel/task.ts'
import { priorities } from '../../api/task-words.ts'

const MOST_OPTIONS = 50

export type TaskDraft = Pick<Task, 'title' | 'description' | 'priority' | 'assigned_to'>

interface Props {
  of: TaskDraft
  agents: readonly OrgAgent[]
  /** The meaning of an empty agent. */
  aboutAgent: string
  onChange: (change: Partial<TaskDraft>) => void
}

export function TaskFields({ of: { title, description, priority, assigned_to }, agents, aboutAgent, onChange }: Props) {
  return (
    <>
      <TextInput
        label="Title"
        required
        maxLength={500}
        value={title}
        onChange={(event) => onChange({ title: event.currentTarget.value })}
        data-autofocus
      />
      <Textarea
        label="Description"
        autosize
        minRows={3}
        maxRows={12}
        value={description}
        onChange={(event) => onChange({ description: event.currentTarget.value })}
      />
      <Select
        label="Priority"
        allowDeselect={false}
        data={[...priorities]}
        value={priority}
        onChange={(value) => onChange({ priority: priorities.find((each) => each === value) ?? priority })}
      />
      <Select
        label="Agent"
        description={aboutAgent}
        searchable
        clearable
        clearButtonProps={{ 'aria-label': 'No agent' }}
        limit={MOST_OPTIONS}
        nothingFoundMessage="No agent has this name."
        data={agents.map(({ id, name }) => ({ value: id, label: name }))}
        value={assigned_to}
        onChange={(agentId) => onChange({ assigned_to: agentId })}
      />
    </>
  )
}
