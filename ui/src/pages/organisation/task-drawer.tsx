// One task: how it stands, its attempts, its subtasks, and what people may do with it.
import { Drawer, Group, Stack, Title } from '@mantine/core'
import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import type { OrgAgent } from '../../../../src/kernel/org.ts'
import type { Run } from '../../../../src/kernel/run.ts'
import type { Task } from '../../../../src/kernel/task.ts'
import { taskQuery } from '../../api/inbox.ts'
import { attemptsQuery, tasksQuery } from '../../api/organisation.ts'
import { useRole } from '../../app/role.ts'
import { AgentName } from '../../parts/agent-name.tsx'
import { tokens } from '../../parts/figures.ts'
import { showMarks } from '../../parts/property-diff.ts'
import { Prose } from '../../parts/prose.tsx'
import { Readable } from '../../parts/readable.tsx'
import { RunStatus } from '../../parts/run-status.tsx'
import { Failure, Loading, Stale } from '../../parts/states.tsx'
import { Status } from '../../parts/status.tsx'
import { waitWords } from '../../parts/wait-words.ts'
import { Elapsed, When } from '../../parts/when.tsx'
import classes from './organisation.module.css'
import { TaskActions } from './task-actions.tsx'
import { TaskLine } from './task-list.tsx'

interface Props {
  projectId: string
  taskId: string
  agents: readonly OrgAgent[]
  onTask: (taskId: string) => void
  onClose: () => void
}

export function TaskDrawer({ projectId, taskId, agents, onTask, onClose }: Props) {
  const task = useQuery(taskQuery(projectId, taskId))
  const mayWork = useRole(projectId) !== 'viewer'
  return (
    <Drawer
      opened
      onClose={onClose}
      position="right"
      size={520}
      title={task.data ? showMarks(task.data.title) : 'Task'}
      closeButtonProps={{ 'aria-label': 'Close' }}
      transitionProps={{ duration: 0 }}
    >
      {task.isPending && <Loading />}
      {task.isError && task.data && <Stale onRetry={() => void task.refetch()} />}
      {task.isError && !task.data && (
        <Failure what="The task could not be read." error={task.error} onRetry={() => void task.refetch()} />
      )}
      {task.data && (
        <Stack gap="lg">
          <Facts projectId={projectId} task={task.data} onTask={onTask} />
          {mayWork && <TaskActions projectId={projectId} task={task.data} agents={agents} />}
          {task.data.description !== '' && <Prose>{task.data.description}</Prose>}
          {task.data.error_message !== null && (
            <Section name={isTried(task.data) ? 'Why the last attempt failed' : 'Error'}>
              <p className={classes.problem}>{showMarks(task.data.error_message)}</p>
            </Section>
          )}
          {task.data.result !== null && (
            <Section name="Result">
              <Readable of={task.data.result} />
            </Section>
          )}
          <Attempts projectId={projectId} taskId={taskId} />
          {task.data.progress.total > 1 && <Subtasks projectId={projectId} taskId={taskId} onTask={onTask} />}
        </Stack>
      )}
    </Drawer>
  )
}

function Facts({ projectId, task, onTask }: { projectId: string; task: Task; onTask: (taskId: string) => void }) {
  const { parent_task_id: parentId, metadata } = task
  const note = useNote(projectId, task)
  return (
    <dl className={classes.facts}>
      <dt>Status</dt>
      <dd>
        <Group gap="xs">
          <Status of={task.status} />
          {note && <span className="dim">{note}</span>}
        </Group>
      </dd>
      <dt>Given to</dt>
      <dd>{task.assigned_to === null ? 'people' : <AgentName projectId={projectId} agentId={task.assigned_to} />}</dd>
      <dt>Priority</dt>
      <dd>{task.priority}</dd>
      {Array.isArray(metadata.competencies) && metadata.competencies.length > 0 && (
        <>
          <dt>Needs</dt>
          <dd>{showMarks(metadata.competencies.map(String).join(', '))}</dd>
        </>
      )}
      {typeof metadata.reasoning === 'string' && (
        <>
          <dt>Delegated because</dt>
          <dd>{showMarks(metadata.reasoning)}</dd>
        </>
      )}
      <dt>Made</dt>
      <dd>
        <When at={task.created_at} />
      </dd>
      {parentId !== null && (
        <>
          <dt>Part of</dt>
          <dd>
            <button type="button" className={classes.inline} onClick={() => onTask(parentId)}>
              a larger task
            </button>
          </dd>
        </>
      )}
    </dl>
  )
}

/** A task that is tried again keeps the error of the attempt before. */
const isTried = ({ status }: Task): boolean => status === 'pending' || status === 'in-progress'

/**
 * The note of a running task counts the attempts since help came, and the list below counts all: the note is told with
 * the number of the list, and with what the attempt waits for.
 */
function useNote(projectId: string, { id, progress: { note } }: Task): string | null {
  const { data } = useQuery(attemptsQuery(projectId, id))
  const newest = data?.items[0]
  if (!newest || note === null || !/^Attempt \d+ is running\.$/.test(note)) return note
  const subject = data.next_cursor === null ? `Attempt ${data.items.length}` : 'The newest attempt'
  if (newest.completed_at !== null) return null
  return newest.is_wait && newest.waiting_for !== null ? `${subject} ${waitWords(newest)}` : `${subject} is running.`
}

function Section({ name, children }: { name: string; children: ReactNode }) {
  return (
    <section aria-label={name}>
      <Title order={3} mb="xs">
        {name}
      </Title>
      {children}
    </section>
  )
}

function Attempts({ projectId, taskId }: { projectId: string; taskId: string }) {
  const attempts = useQuery(attemptsQuery(projectId, taskId))
  const runs = attempts.data?.items ?? []
  return (
    <Section name="Attempts">
      {attempts.isPending && <Loading lines={2} />}
      {attempts.isError && !attempts.data && (
        <Failure
          what="The attempts could not be read."
          error={attempts.error}
          onRetry={() => void attempts.refetch()}
        />
      )}
      {attempts.data && runs.length === 0 && <p className="dim">Nobody has begun it yet.</p>}
      <ul className={classes.list}>
        {runs.map((run, place) => (
          <Attempt key={run.id} projectId={projectId} run={run} number={runs.length - place} />
        ))}
      </ul>
      {attempts.data?.next_cursor && <p className="dim">Older attempts are not shown.</p>}
    </Section>
  )
}

function Attempt({ projectId, run, number }: { projectId: string; run: Run; number: number }) {
  return (
    <li className={classes.line}>
      <RunStatus run={run} />
      <Link to="/projects/$projectId/runs/$runId" params={{ projectId, runId: run.id }}>
        Attempt {number}
      </Link>
      <span className="dim number">
        {run.step_count} steps · {tokens(run.usage.total_tokens)} tokens ·{' '}
        <Elapsed from={run.started_at} ms={run.duration} />
      </span>
    </li>
  )
}

function Subtasks({ projectId, taskId, onTask }: Pick<Props, 'projectId' | 'taskId' | 'onTask'>) {
  const tasks = useInfiniteQuery(tasksQuery(projectId, { parent_task_id: taskId }))
  return (
    <Section name="Subtasks">
      <ul className={classes.list}>
        {tasks.data?.pages
          .flatMap((page) => page.items)
          .map((task) => (
            <TaskLine key={task.id} projectId={projectId} task={task} hasAgent onClick={() => onTask(task.id)} />
          ))}
      </ul>
      {tasks.hasNextPage && (
        <button type="button" className={classes.inline} onClick={() => void tasks.fetchNextPage()}>
          More
        </button>
      )}
    </Section>
  )
}
