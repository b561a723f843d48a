// Gives work: to an agent, to the one who is competent and has the least to do, or to people.
import { Select } from '@mantine/core'
import { useState } from 'react'
import type { OrgAgent } from '../../../../src/kernel/org.ts'
import type { Task, TaskInput } from '../../../../src/kernel/task.ts'
import { post } from '../../api/client.ts'
import { projectPath } from '../../api/queries.ts'
import { FormDialog } from '../../parts/form-dialog.tsx'
import { showMarks } from '../../parts/property-diff.ts'
import { bestAgent } from './org-rows.ts'
import { type TaskDraft, TaskFields } from './task-fields.tsx'
import { useAct } from './use-act.ts'

const MOST_OPTIONS = 50

interface Props {
  projectId: string
  agents: readonly OrgAgent[]
  initialAgent: string | null
  onClose: () => void
  onMade: (task: Task) => void
}

export function NewTaskDialog({ projectId, agents, initialAgent, onClose, onMade }: Props) {
  const [draft, setDraft] = useState<TaskDraft>({
    title: '',
    description: '',
    priority: 'medium',
    assigned_to: initialAgent,
  })
  const agentId = draft.assigned_to
  const [competency, setCompetency] = useState<string | null>(null)
  const { act, ...state } = useAct(projectId)
  const best = agentId === null && competency !== null ? bestAgent(agents, competency) : null
  const assignee = agentId ?? best?.id ?? null
  const make = (): void => {
    const body: TaskInput = {
      ...draft,
      assigned_to: assignee,
      ...(competency === null ? {} : { metadata: { competencies: [competency] } }),
    }
    void act(async () => onMade(await post<Task>(projectPath(projectId, '/tasks'), body)), 'The task is given.')
  }
  return (
    <FormDialog
      title="New task"
      action="Save"
      write={state}
      isDisabled={draft.title.trim() === '' || (competency !== null && assignee === null)}
      onSubmit={make}
      onClose={onClose}
    >
      <TaskFields
        of={draft}
        agents={agents}
        aboutAgent="Empty: the one with the competency below, else people."
        onChange={(change) => setDraft({ ...draft, ...change })}
      />
      <CompetencySelect agents={agents} value={competency} onChange={setCompetency} />
      <p className="dim" role="status" style={{ margin: 0 }}>
        {whoGetsIt(agents, agentId, competency, best)}
      </p>
    </FormDialog>
  )
}

interface CompetencyProps {
  agents: readonly OrgAgent[]
  value: string | null
  onChange: (competency: string | null) => void
}

function CompetencySelect({ agents, value, onChange }: CompetencyProps) {
  return (
    <Select
      label="Competency"
      description="What the task needs. Seniors delegate by it."
      searchable
      clearable
      clearButtonProps={{ 'aria-label': 'No competency' }}
      limit={MOST_OPTIONS}
      nothingFoundMessage="No agent knows this."
      data={[...new Set(agents.flatMap(({ competencies }) => competencies))].toSorted()}
      value={value}
      onChange={onChange}
    />
  )
}

function whoGetsIt(
  agents: readonly OrgAgent[],
  agentId: string | null,
  competency: string | null,
  best: OrgAgent | null,
): string {
  const given = agents.find(({ id }) => id === agentId)
  if (given)
    return `${showMarks(given.name)} gets it${given.status === 'paused' ? ' and begins when it is started' : ''}.`
  if (best) return `${showMarks(best.name)} gets it: it knows ${competency} and has ${best.load} open tasks.`
  if (competency !== null) return `No agent that knows ${competency} is free. Choose an agent.`
  return 'People get it: it appears in the inbox.'
}
