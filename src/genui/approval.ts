// A task that waits for people: a suggestion with its exact change, or a question.
import type { Component, Layout, LeafComponent } from '../kernel/genui.ts'
import { objectChanges, suggestedCall, type Task } from '../kernel/task.ts'
import { asLabel, asMarkdown, asText, visible } from './plain-text.ts'
import { showQuestion } from './question.ts'
import { showCall } from './show-call.ts'
import { showChange } from './show-change.ts'

export interface ApprovalFacts {
  task: Task
  /** The name of the agent that made the task; null if no agent did. */
  author: string | null
}

/** The most changes that are shown whole; a suggestion has one change today. */
const MOST_CHANGES = 20
/** The most characters of all changes together. */
const MOST_CHARACTERS = 150_000

/** True for tasks on which people decide. */
export const isForApproval = ({ kind }: Pick<Task, 'kind'>): boolean => kind !== 'work'

export function showApproval({ task, author }: ApprovalFacts): Layout {
  const title = asText(visible(task.title)).trim() || 'Without a title'
  const by = author === null ? null : `${task.kind === 'suggestion' ? 'Suggested' : 'Asked'} by ${author}.`
  const components: Component[] = [
    { type: 'text', id: 'title', value: title, style: 'title' },
    ...(by === null ? [] : [{ type: 'text', id: 'author', value: asText(by), style: 'note' } as const]),
    ...(task.kind === 'suggestion' ? showSuggestion(task) : showQuestion(task)),
    { type: 'group', id: 'more', title: 'More', components: showLinks(task) },
  ]
  return { components }
}

function showSuggestion(task: Task): Component[] {
  const call = suggestedCall(task)
  const called = call && showCall(call)
  const all = objectChanges(task)
  const shown = all.slice(0, MOST_CHANGES)
  const room = Math.floor(MOST_CHARACTERS / Math.max(1, shown.length))
  const diffs = shown.map((change, index) => showChange(`change_${index + 1}`, change, room))
  const isWhole = all.length <= MOST_CHANGES && diffs.every((diff) => diff.is_whole) && called?.isWhole !== false
  const reasoning = task.reasoning?.trim() ?? ''
  const why: Component[] =
    reasoning === ''
      ? []
      : [
          {
            type: 'group',
            id: 'why',
            title: 'Why',
            components: [{ type: 'markdown', id: 'reasoning', value: asMarkdown(reasoning) }],
          },
        ]
  const shownCall = called ? [called.table] : []
  return [...why, ...shownCall, ...diffs, ...showState(task, isWhole), ...showDecision(task, isWhole)]
}

const isStale = ({ metadata }: Task): boolean => metadata.stale === true

function showState(task: Task, isWhole: boolean): Component[] {
  const say = (value: string, tone: 'neutral' | 'good' | 'warning' | 'bad'): Component[] => [
    { type: 'text', id: 'state', value: asText(value), tone },
  ]
  const isCall = suggestedCall(task) !== null
  if (task.status === 'completed') {
    return say(
      isCall ? 'This was approved, and its run makes the call.' : 'This was approved, and the change is made.',
      'good',
    )
  }
  if (task.status === 'rejected') {
    return say(
      isCall ? 'This was rejected, and the call is not made.' : 'This was rejected, and nothing changed.',
      'neutral',
    )
  }
  if (task.status !== 'pending') return say(`This is ${task.status}.`, 'neutral')
  if (isStale(task)) {
    const { stale_reason: reason } = task.metadata
    const why = typeof reason === 'string' ? reason : 'The object has changed since this was suggested.'
    return say(`${why} It can only be rejected.`, 'warning')
  }
  if (!isWhole) return say('The change is too large to be shown whole here. Open the task to approve it.', 'warning')
  return say('This waits for a decision.', 'neutral')
}

/** A change that is not shown whole cannot be approved here. */
function showDecision(task: Task, isWhole: boolean): Component[] {
  if (task.status !== 'pending') return []
  const approve: LeafComponent = {
    type: 'button',
    id: 'approve',
    label: 'Approve',
    action: { type: 'approve', task_id: task.id },
    emphasis: 'primary',
  }
  const components: LeafComponent[] = [
    ...(isWhole && !isStale(task) ? [approve] : []),
    { type: 'input', id: 'reason', label: 'Reason for a rejection (optional)', multiline: true },
    {
      type: 'button',
      id: 'reject',
      label: 'Reject',
      action: { type: 'reject', task_id: task.id, from: 'reason' },
      emphasis: 'danger',
    },
  ]
  return [{ type: 'group', id: 'decision', title: 'Decision', components }]
}

function showLinks(task: Task): LeafComponent[] {
  const open = (id: string, label: string, target: 'task' | 'run' | 'object', of: string): LeafComponent => ({
    type: 'button',
    id,
    label: asLabel(label),
    action: { type: 'open', target, id: of },
    emphasis: 'plain',
  })
  const objectIds = [
    ...new Set(
      objectChanges(task)
        .slice(0, MOST_CHANGES)
        .map((change) => change.object_id),
    ),
  ]
  return [
    open('open_task', 'Open the task', 'task', task.id),
    ...(task.run_id === null ? [] : [open('open_run', 'Open the run', 'run', task.run_id)]),
    ...objectIds.flatMap((id, index) =>
      id === null ? [] : [open(`open_object_${index + 1}`, 'Open the object', 'object', id)],
    ),
  ]
}
