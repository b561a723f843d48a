// The messages of a chat: texts as Markdown while they are written, the question of an escalation with its answer box,
// and what happened in the run of each answer.
import { Alert, Button, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { RotateCw } from 'lucide-react'
import { useEffect, useRef, useState } from 'react'
import { questionQuery } from '../../api/chats.ts'
import { lazily } from '../../parts/lazily.tsx'
import { Panel } from '../../parts/panel.tsx'
import { Empty } from '../../parts/states.tsx'
import classes from './chat.module.css'
import { LayoutView } from './genui-layout.tsx'
import { type Message, textOf } from './kept-chats.ts'
import { agentName, type Doing, isCancelled } from './words.ts'

const ModelText = lazily(() => import('../../parts/markdown.tsx').then((module) => module.ModelText))

interface Props {
  projectId: string
  messages: readonly Message[]
  isBusy: boolean
  doing: Doing
  asks: boolean
  onAnswered: () => void
  problem: string | null
  onRetry: () => void
}

export function Messages({ projectId, messages, isBusy, doing, asks, onAnswered, problem, onRetry }: Props) {
  const end = useFollowed(messages)
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
    <div className={classes.log} role="log" aria-label="Messages" aria-busy={isBusy} tabIndex={0}>
      {messages.length === 0 && !isBusy && (
        <Empty>Give the supervisor a task. It plans, hands the parts to specialists, and answers here.</Empty>
      )}
      {messages.map((message) => (
        <Said
          key={message.id}
          projectId={projectId}
          message={message}
          isLast={message === messages.at(-1)}
          isBusy={isBusy}
        />
      ))}
      {asks && <Question projectId={projectId} message={messages.at(-1)} onAnswered={onAnswered} />}
      {isBusy && (
        <Text size="sm" className={classes.doing} role="status">
          {doing.agent === null ? 'At work…' : `${agentName(doing.agent)} is at work…`}
        </Text>
      )}
      {problem !== null && (
        <Alert color="red" role="alert" m="md" title="The answer failed.">
          <Text size="sm">{problem}</Text>
          <Button
            mt="xs"
            size="compact-sm"
            variant="default"
            leftSection={<RotateCw size={13} aria-hidden />}
            onClick={onRetry}
          >
            Retry
          </Button>
        </Alert>
      )}
      <div ref={end} />
    </div>
  )
}

/** Keeps the end of the messages in view, unless the person has scrolled up. */
function useFollowed(messages: readonly Message[]) {
  const end = useRef<HTMLDivElement>(null)
  // biome-ignore lint/correctness/useExhaustiveDependencies: whenever the messages change
  useEffect(() => {
    const log = end.current?.parentElement
    if (!log) return
    const isNearEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 160
    if (isNearEnd) log.scrollTop = log.scrollHeight
  }, [messages])
  return end
}

function Said(props: { projectId: string; message: Message; isLast: boolean; isBusy: boolean }) {
  const { projectId, message, isLast, isBusy } = props
  const text = textOf(message)
  const runId = message.metadata?.run_id
  const isWriting = isLast && isBusy && message.role === 'assistant'
  return (
    <article
      className={classes.message}
      data-role={message.role}
      aria-label={message.role === 'user' ? 'You' : 'Supervisor'}
    >
      <div className={classes.who}>{message.role === 'user' ? 'You' : 'Supervisor'}</div>
      {message.role === 'user' ? (
        <div className={classes.bubble}>{text}</div>
      ) : (
        <div className={isWriting ? classes.writing : undefined}>
          {text !== '' && (
            <Panel name="The text">
              <ModelText>{text}</ModelText>
            </Panel>
          )}
        </div>
      )}
      {isCancelled(message) && <Text className="dim">The run was stopped.</Text>}
      {runId !== undefined && !isWriting && <Happened projectId={projectId} runId={runId} />}
    </article>
  )
}

/** The run of an answer: a link to its page, and its summary as a layout. */
function Happened({ projectId, runId }: { projectId: string; runId: string }) {
  const [isOpen, setIsOpen] = useState(false)
  return (
    <>
      <div className={classes.links}>
        <Button
          size="compact-xs"
          variant="subtle"
          color="gray"
          aria-expanded={isOpen}
          onClick={() => setIsOpen(!isOpen)}
        >
          What happened
        </Button>
        <Link to="/projects/$projectId/runs/$runId" params={{ projectId, runId }} className={classes.link}>
          Open the run
        </Link>
      </div>
      {isOpen && (
        <Panel name="The summary">
          <LayoutView projectId={projectId} context={{ scenario: 'run_summary', run_id: runId }} />
        </Panel>
      )}
    </>
  )
}

/** The question of an escalation. It may be answered here, in the message field, or in the inbox. */
function Question(props: { projectId: string; message: Message | undefined; onAnswered: () => void }) {
  const { projectId, message, onAnswered } = props
  const runId = message?.metadata?.run_id ?? ''
  const question = useQuery({ ...questionQuery(projectId, runId), enabled: runId !== '' })
  return (
    <section className={classes.question} aria-label="Your answer is needed">
      <Text fw={600}>Your answer is needed. Write it here, or as the next message.</Text>
      {question.data && (
        <Panel name="The question">
          <LayoutView
            projectId={projectId}
            context={{ scenario: 'approval', task_id: question.data.id }}
            onDone={onAnswered}
          />
        </Panel>
      )}
    </section>
  )
}
