// The tasks of an agent, or of all, newest first.
import { Select } from '@mantine/core'
import { useInfiniteQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { Task } from '../../../../src/kernel/task.ts'
import { tasksQuery } from '../../api/organisation.ts'
import { workStatuses } from '../../api/task-words.ts'
import { AgentName } from '../../parts/agent-name.tsx'
import { More } from '../../parts/more.tsx'
import { showMarks } from '../../parts/property-diff.ts'
import { Empty, Failure, Loading, Stale } from '../../parts/states.tsx'
import { Status } from '../../parts/status.tsx'
import { When } from '../../parts/when.tsx'
import classes from './organisation.module.css'

interface Props {
  projectId: string
  /** Null: the tasks of all. */
  agentId: string | null
  onTask: (taskId: string) => void
}

export function TaskList({ projectId, agentId, onTask }: Props) {
  const [status, setStatus] = useState<string | null>(null)
  const filter = { ...(agentId === null ? {} : { assigned_to: agentId }), ...(status === null ? {} : { status }) }
  const tasks = useInfiniteQuery(tasksQuery(projectId, filter))
  const items = tasks.data?.pages.flatMap((page) => page.items) ?? []
  return (
    <>
      <Select
        aria-label="Status"
        placeholder="Any status"
        size="xs"
        w={140}
        mb="xs"
        clearable
        data={workStatuses}
        value={status}
        onChange={setStatus}
      />
      {tasks.isPending && <Loading />}
      {tasks.isError && !tasks.data && (
        <Failure what="The tasks could not be read." error={tasks.error} onRetry={() => void tasks.refetch()} />
      )}
      {tasks.isError && tasks.data && <Stale onRetry={() => void tasks.refetch()} />}
      {tasks.data && items.length === 0 && (
        <Empty>{status === null ? 'No task was given yet. New task gives one.' : 'No task matches.'}</Empty>
      )}
      <ul className={classes.list} aria-label="Tasks">
        {items.map((task) => (
          <TaskLine
            key={task.id}
            projectId={projectId}
            task={task}
            hasAgent={agentId === null}
            onClick={() => onTask(task.id)}
          />
        ))}
      </ul>
      <More list={tasks} />
    </>
  )
}

interface LineProps {
  projectId: string
  task: Task
  hasAgent: boolean
  onClick: () => void
}

export function TaskLine({ projectId, task, hasAgent, onClick }: LineProps) {
  const { progress } = task
  return (
    <li>
      <div className={classes.line}>
        <Status of={task.status} />
        <button type="button" className={classes.link} onClick={onClick} title={task.title}>
          {showMarks(task.title)}
        </button>
        {(task.priority === 'high' || task.priority === 'urgent') && (
          <span style={{ color: 'var(--blocked)' }}>{task.priority}</span>
        )}
        <span className="dim">
          <When at={task.created_at} />
        </span>
      </div>
      <div className="dim">
        {hasAgent && task.assigned_to === null && 'for people '}
        {hasAgent && task.assigned_to !== null && (
          <>
            <AgentName projectId={projectId} agentId={task.assigned_to} />{' '}
          </>
        )}
        {progress.total > 1 && `${progress.done} of ${progress.total} subtasks `}
        {progress.note}
      </div>
    </li>
  )
}
