// The messages that an agent sent and received. Reports are the messages that tell of completed work.
import { useInfiniteQuery } from '@tanstack/react-query'
import type { AgentMessage } from '../../../../src/kernel/agent-message.ts'
import { messagesQuery } from '../../api/organisation.ts'
import { AgentName } from '../../parts/agent-name.tsx'
import { More } from '../../parts/more.tsx'
import { showMarks } from '../../parts/property-diff.ts'
import { Empty, Failure, Loading, Stale } from '../../parts/states.tsx'
import { When } from '../../parts/when.tsx'
import classes from './organisation.module.css'

interface Props {
  projectId: string
  agentId: string
  isReports?: boolean
  onTask: (taskId: string) => void
}

export function MessageList({ projectId, agentId, isReports = false, onTask }: Props) {
  const messages = useInfiniteQuery(messagesQuery(projectId, agentId))
  const all = messages.data?.pages.flatMap((page) => page.items) ?? []
  const items = all.filter(({ kind }) => !isReports || kind === 'completion')
  const name = isReports ? 'reports' : 'messages'
  return (
    <>
      {messages.isPending && <Loading />}
      {messages.isError && !messages.data && (
        <Failure
          what={`The ${name} could not be read.`}
          error={messages.error}
          onRetry={() => void messages.refetch()}
        />
      )}
      {messages.isError && messages.data && <Stale onRetry={() => void messages.refetch()} />}
      {messages.data && items.length === 0 && (
        <Empty>
          {isReports ? 'No completed work was reported yet.' : 'It has neither sent nor received a message.'}
        </Empty>
      )}
      <ul className={classes.list} aria-label={isReports ? 'Reports' : 'Messages'}>
        {items.map((message) => (
          <Message key={message.id} projectId={projectId} message={message} onTask={onTask} />
        ))}
      </ul>
      <More list={messages} />
    </>
  )
}

interface MessageProps {
  projectId: string
  message: AgentMessage
  onTask: (taskId: string) => void
}

function Message({ projectId, message: { from, to, kind, body, task_id: taskId, created_at }, onTask }: MessageProps) {
  return (
    <li>
      <div className="dim">
        {kind} · <AgentName projectId={projectId} agentId={from} /> to <AgentName projectId={projectId} agentId={to} />{' '}
        · <When at={created_at} />
        {taskId !== null && (
          <>
            {' · '}
            <button type="button" className={classes.inline} onClick={() => onTask(taskId)}>
              its task
            </button>
          </>
        )}
      </div>
      <p className={classes.body}>{showMarks(body)}</p>
    </li>
  )
}
