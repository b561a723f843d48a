// One thing that waits: what it is, who wants it and why, and the decision.
import { Checkbox, Group, Title } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import {
  Bell,
  CircleHelp,
  Coins,
  GitPullRequest,
  type LucideIcon,
  RotateCcw,
  Unplug,
  UserRound,
  Wrench,
} from 'lucide-react'
import { type ReactNode, useEffect, useRef, useState } from 'react'
import type { Task } from '../../../../src/kernel/task.ts'
import { type InboxKind, inboxKindOf } from '../../api/inbox.ts'
import { suggestedCall } from '../../api/task-words.ts'
import { useMe } from '../../app/gate.tsx'
import { useRole } from '../../app/role.ts'
import { AgentName } from '../../parts/agent-name.tsx'
import { oneLine } from '../../parts/figures.ts'
import { showMarks } from '../../parts/property-diff.ts'
import { Status } from '../../parts/status.tsx'
import { When } from '../../parts/when.tsx'
import { AnewBody } from './anew-body.tsx'
import { AnswerBody } from './answer-body.tsx'
import { BudgetBody } from './budget-body.tsx'
import { CallBody } from './call-body.tsx'
import classes from './inbox.module.css'
import { OutcomeBody } from './outcome-body.tsx'
import { SuggestionBody } from './suggestion-body.tsx'
import type { Decisions } from './use-decisions.ts'

const LOOKS: Record<InboxKind, { icon: LucideIcon; name: string; by: string }> = {
  suggestion: { icon: GitPullRequest, name: 'Suggestion', by: 'suggested by' },
  call: { icon: Wrench, name: 'Call', by: 'asked for by' },
  question: { icon: CircleHelp, name: 'Question', by: 'asked by' },
  outcome: { icon: Unplug, name: 'Undecided outcome', by: 'called by' },
  anew: { icon: RotateCcw, name: 'Start over?', by: 'asked by' },
  budget: { icon: Coins, name: 'Budget', by: 'needed by' },
  escalation: { icon: Bell, name: 'Escalation', by: 'raised by' },
  work: { icon: UserRound, name: 'Work for people', by: 'wanted by' },
}

export interface CardProps {
  projectId: string
  task: Task
  isOpen: boolean
  isCurrent: boolean
  /** Null: it cannot be selected. */
  isSelected: boolean | null
  decisions: Decisions
  onFocus: () => void
  onSelect: (isSelected: boolean) => void
  onReject: () => void
}

export function InboxCard(props: CardProps) {
  const { projectId, task, isOpen, isCurrent, isSelected, decisions } = props
  const mayDecide = useRole(projectId) !== 'viewer'
  const kind = inboxKindOf(task)
  const title = showMarks(task.title)
  const problem = decisions.problems.get(task.id)
  const place = useFocusKept(isOpen)
  const [wasOpen] = useState(isOpen)
  return (
    <li
      ref={place}
      id={`item-${task.id}`}
      aria-label={title}
      tabIndex={-1}
      className={classes.card}
      data-current={isCurrent || undefined}
      data-open={isOpen || undefined}
      aria-current={isCurrent ? 'true' : undefined}
      onFocus={props.onFocus}
    >
      <div className={classes.head}>
        {isSelected !== null && (
          <Checkbox
            size="xs"
            aria-label={`Select ${title}`}
            checked={isSelected}
            onChange={(event) => props.onSelect(event.currentTarget.checked)}
          />
        )}
        <Kind of={kind} />
        <Title order={2} className={classes.title ?? ''}>
          {title}
        </Title>
        {isOpen && (task.priority === 'high' || task.priority === 'urgent') && (
          <span className={classes.priority}>{task.priority}</span>
        )}
        {!isOpen && <Status of={task.status} />}
      </div>
      <p className={classes.facts}>
        {LOOKS[kind].by} <Author projectId={projectId} task={task} /> · <When at={task.created_at} />
        <Places projectId={projectId} task={task} />
      </p>
      {problem !== undefined && (
        <p role="alert" className={classes.problem}>
          {problem}
        </p>
      )}
      {!isOpen && (
        <Fate task={task} isTooLate={wasOpen && !(decisions.settled.has(task.id) && problem === undefined)} />
      )}
      <Body {...props} kind={kind} mayDecide={mayDecide} />
    </li>
  )
}

/** The button that decided is gone; the card has the focus then, unless somebody moved on. */
function useFocusKept(isOpen: boolean) {
  const place = useRef<HTMLLIElement>(null)
  const wasOpen = useRef(isOpen)
  useEffect(() => {
    const isLost = wasOpen.current && !isOpen && document.activeElement === document.body
    if (isLost && place.current?.matches('[aria-current]')) place.current.focus({ preventScroll: true })
    wasOpen.current = isOpen
  }, [isOpen])
  return place
}

function Kind({ of }: { of: InboxKind }) {
  const { icon: Icon, name } = LOOKS[of]
  return (
    <span className={classes.kind}>
      <Icon size={14} aria-hidden />
      {/* The title of a call begins with the word. */}
      {of !== 'call' && name}
    </span>
  )
}

function Author({ projectId, task }: { projectId: string; task: Task }) {
  const me = useMe()
  const { type, id } = task.created_by
  if (type === 'agent' && id !== null) return <AgentName projectId={projectId} agentId={id} runId={task.run_id} />
  return id === me.id ? 'you' : 'a person'
}

/** The origin of the item. */
function Places({ projectId, task }: { projectId: string; task: Task }) {
  const { run_id: runId, metadata } = task
  const { blockedTaskId: blocked, blockedAgentId: agent } = metadata
  return (
    <>
      {runId !== null && (
        <>
          {' · '}
          <Link to="/projects/$projectId/runs/$runId" params={{ projectId, runId }}>
            its run
          </Link>
        </>
      )}
      {typeof blocked === 'string' && typeof agent === 'string' && (
        <>
          {' · '}
          <Link to="/projects/$projectId/organisation" params={{ projectId }} search={{ agent, task: blocked }}>
            the blocked task
          </Link>
        </>
      )}
    </>
  )
}

function Body(props: CardProps & { kind: InboxKind; mayDecide: boolean }): ReactNode {
  switch (props.kind) {
    case 'suggestion':
      return <SuggestionBody {...props} />
    case 'call':
      return <CallBody {...props} />
    case 'anew':
      return <AnewBody {...props} />
    case 'outcome':
      return <OutcomeBody {...props} />
    case 'budget':
      return <BudgetBody {...props} />
    case 'question':
    case 'escalation':
    case 'work':
      return <AnswerBody {...props} isQuestion={props.kind !== 'work'} />
  }
}

/** The decision about the item. `isTooLate`: somebody else made it while the reader saw the item open. */
function Fate({ task, isTooLate }: { task: Task; isTooLate: boolean }) {
  return (
    <Group gap="xs" role="status">
      <span>{fateOf(task)}</span>
      {isTooLate && <span className="dim">Somebody else decided this meanwhile.</span>}
    </Group>
  )
}

function fateOf(task: Task): string {
  const { kind, status, result } = task
  const isSuggestion = kind === 'suggestion'
  const isCall = suggestedCall(task) !== null
  const reason = isSuggestion ? (result as { reason?: unknown } | null)?.reason : undefined // as the API stores a rejection
  switch (status) {
    case 'completed':
      if (isCall) return 'It was approved: the run makes the call.'
      if (isSuggestion) return 'It was approved: the change is made.'
      if (inboxKindOf(task) === 'anew') return result === 'again' ? 'The work starts over.' : 'The work was stopped.'
      return result === null ? 'It is done.' : `It was answered: ${oneLine(result)}`
    case 'rejected':
      return typeof reason === 'string' ? `It was rejected: ${reason}` : 'It was rejected.'
    case 'cancelled':
      return isCall ? 'It was withdrawn: its run no longer asks.' : 'It was closed without an answer.'
    default:
      return `It is ${status}.`
  }
}
