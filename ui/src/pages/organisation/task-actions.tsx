// The actions on a task: edit it, give it to another, try it again, mark it as done, cancel it.
import { Button, Group, Stack } from '@mantine/core'
import { Ban, Check, Pencil, RotateCw } from 'lucide-react'
import { useState } from 'react'
import type { OrgAgent } from '../../../../src/kernel/org.ts'
import type { Task, TaskPatch } from '../../../../src/kernel/task.ts'
import { patch } from '../../api/client.ts'
import { projectPath } from '../../api/queries.ts'
import { isTaskOver } from '../../api/task-words.ts'
import { ConfirmButton } from '../../parts/confirm.tsx'
import { Problem } from '../../parts/problem.tsx'
import { type TaskDraft, TaskFields } from './task-fields.tsx'
import { useAct } from './use-act.ts'

interface Props {
  projectId: string
  task: Task
  agents: readonly OrgAgent[]
}

export function TaskActions({ projectId, task, agents }: Props) {
  const [isEdited, setIsEdited] = useState(false)
  const { act, isBusy, problem } = useAct(projectId)
  const change = (fields: TaskPatch, said: string): Promise<boolean> =>
    act(() => patch(projectPath(projectId, `/tasks/${task.id}`), fields), said)
  const isOpen = !isTaskOver(task)
  const mayRetry = task.status === 'failed' || task.status === 'blocked'
  if (task.kind !== 'work' || (!isOpen && !mayRetry)) return null
  if (isEdited) {
    return (
      <EditForm
        task={task}
        agents={agents}
        isBusy={isBusy}
        problem={problem}
        onClose={() => setIsEdited(false)}
        onSave={async (fields) => {
          if (await change(fields, 'The task is changed.')) setIsEdited(false)
        }}
      />
    )
  }
  return (
    <>
      <Group gap="xs">
        {mayRetry && (
          <Button
            size="xs"
            loading={isBusy}
            leftSection={<RotateCw size={13} aria-hidden />}
            onClick={() => void change({ status: 'pending' }, 'The task is tried again.')}
          >
            Retry
          </Button>
        )}
        <Button
          size="xs"
          variant="default"
          leftSection={<Pencil size={13} aria-hidden />}
          onClick={() => setIsEdited(true)}
        >
          Edit
        </Button>
        {isOpen && (
          <>
            <ConfirmButton
              name="Complete"
              title="Mark this task as completed?"
              text="Nobody works on it any more. A run under way is cancelled."
              icon={<Check size={13} aria-hidden />}
              isBusy={isBusy}
              onSure={() => change({ status: 'completed' }, 'The task is completed.')}
            />
            <ConfirmButton
              name="Cancel"
              title="Cancel this task?"
              text="Nobody works on it any more. A run under way is cancelled."
              icon={<Ban size={13} aria-hidden />}
              isBusy={isBusy}
              onSure={() => change({ status: 'cancelled' }, 'The task is cancelled.')}
            />
          </>
        )}
      </Group>
      <Problem text={problem} />
    </>
  )
}

interface EditProps {
  task: Task
  agents: readonly OrgAgent[]
  isBusy: boolean
  problem: string | null
  onClose: () => void
  onSave: (fields: TaskPatch) => Promise<void>
}

function EditForm({ task, agents, isBusy, problem, onClose, onSave }: EditProps) {
  const [draft, setDraft] = useState<TaskDraft>(task)
  const save = (): void => {
    const { title, description, priority, assigned_to } = draft
    // Only what was changed is sent: to name the same agent again would be no change, but a title changed meanwhile stays.
    void onSave({
      ...(title === task.title ? {} : { title }),
      ...(description === task.description ? {} : { description }),
      ...(priority === task.priority ? {} : { priority }),
      ...(assigned_to === task.assigned_to ? {} : { assigned_to }),
    })
  }
  return (
    <Stack gap="sm">
      <Problem text={problem} />
      <TaskFields
        of={draft}
        agents={agents}
        aboutAgent="Empty: people. Work under way is handed over."
        onChange={(change) => setDraft({ ...draft, ...change })}
      />
      <Group justify="flex-end" gap="xs">
        <Button size="xs" variant="default" onClick={onClose}>
          Close
        </Button>
        <Button size="xs" loading={isBusy} disabled={draft.title.trim() === ''} onClick={save}>
          Save
        </Button>
      </Group>
    </Stack>
  )
}
