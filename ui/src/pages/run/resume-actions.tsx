// The ways to continue a run that has ended: Resume, the task or the flow run that decides about it, and a new start.
import { Button, Group } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { RotateCw, StepForward } from 'lucide-react'
import type { Run } from '../../../../src/kernel/run.ts'
import { patch } from '../../api/client.ts'
import { taskQuery } from '../../api/inbox.ts'
import { effectsQuery, projectPath } from '../../api/queries.ts'
import { Problem } from '../../parts/problem.tsx'
import { useWrite } from '../../parts/use-write.ts'
import { resumeSentence } from './effect-words.ts'
import type { Dialog } from './run-dialogs.tsx'
import classes from './run-page.module.css'

interface Props {
  run: Run
  onDialog: (dialog: Dialog) => void
}

export function ResumeActions({ run, onDialog }: Props) {
  return (
    <>
      <ResumeSentence run={run} />
      <Group gap="xs">
        <Button
          size="xs"
          leftSection={<StepForward size={13} aria-hidden />}
          onClick={() => onDialog({ type: 'resume' })}
        >
          Resume
        </Button>
        <Button
          size="xs"
          variant="default"
          leftSection={<RotateCw size={13} aria-hidden />}
          onClick={() => onDialog({ type: 'again' })}
        >
          Start again from the beginning
        </Button>
      </Group>
    </>
  )
}

/** The step after which the work continues, and the calls that are not repeated. */
function ResumeSentence({ run }: { run: Run }) {
  const { data: effects } = useQuery(effectsQuery(run.project_id, run.id))
  return effects && <p className={`${classes.next} dim`}>{resumeSentence(run, effects)}</p>
}

/** The next attempt at the task continues this run. */
export function TaskResume({ run }: { run: Run }) {
  const { project_id: projectId, trigger } = run
  const taskId = trigger.task_id ?? ''
  const navigate = useNavigate()
  const { write, isBusy, problem } = useWrite({ reads: [['task', projectId]] })
  const { data: task } = useQuery({ ...taskQuery(projectId, taskId), enabled: taskId !== '' })
  if (!task) return null
  const place = { to: '/projects/$projectId/organisation', params: { projectId }, search: { task: taskId } } as const
  const isStuck = task.status === 'blocked' || task.status === 'failed'
  const resume = (): void =>
    void write(async () => {
      await patch(projectPath(projectId, `/tasks/${taskId}`), { status: 'pending' })
      await navigate(place)
    }, 'The task is pending again. Its next attempt continues this run.')
  return (
    <>
      {isStuck ? <ResumeSentence run={run} /> : <p className={`${classes.next} dim`}>{standingOf(task.status)}</p>}
      <Problem text={problem} />
      <Group gap="xs">
        {isStuck && (
          <Button size="xs" loading={isBusy} leftSection={<StepForward size={13} aria-hidden />} onClick={resume}>
            Resume
          </Button>
        )}
        <Link {...place}>Open its task</Link>
      </Group>
    </>
  )
}

function standingOf(status: string): string {
  if (status === 'pending' || status === 'in-progress')
    return 'It was an attempt at a task. The next attempt continues it by itself.'
  return `It was an attempt at a task that is ${status} now.`
}

/** A flow run takes over every finished leaf, so the leaf's own run is not resumed alone. */
export function FlowResume({ run }: { run: Run }) {
  const { project_id: projectId, trigger } = run
  const { flow_run_id: flowRunId = '', task_id: task } = trigger
  return (
    <>
      <p className={`${classes.next} dim`}>It is a leaf of a flow run. Resume the flow run: finished steps are kept.</p>
      <Link
        to="/projects/$projectId/flows/$flowRunId"
        params={{ projectId, flowRunId }}
        search={task === undefined ? {} : { task }}
      >
        Open its flow run
      </Link>
    </>
  )
}
