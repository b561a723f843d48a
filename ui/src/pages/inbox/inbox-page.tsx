// Everything that waits for a person, with the reason and the action beside it.
import { Button, Checkbox, Group, Title } from '@mantine/core'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import type { Task } from '../../../../src/kernel/task.ts'
import { type InboxKind, inboxKindOf, inboxKinds } from '../../api/inbox.ts'
import { suggestedCall } from '../../api/task-words.ts'
import { useRole } from '../../app/role.ts'
import { Confirm, type Question } from '../../parts/confirm.tsx'
import { PageHead } from '../../parts/page-head.tsx'
import { showMarks } from '../../parts/property-diff.ts'
import { Empty, Failure, Loading, Stale } from '../../parts/states.tsx'
import classes from './inbox.module.css'
import { InboxCard } from './inbox-card.tsx'
import { idFrom, nextOpen } from './keep-places.ts'
import { RejectDialog } from './reject-dialog.tsx'
import { type Decisions, useDecisions } from './use-decisions.ts'
import { type Entry, useInbox } from './use-inbox.ts'
import { type InboxKey, useInboxKeys } from './use-inbox-keys.ts'

const ROUTE = '/projects/$projectId/inbox'
const route = getRouteApi(ROUTE)

export function InboxPage() {
  const { projectId } = route.useParams()
  return <Inbox key={projectId} projectId={projectId} />
}

const NAMES: Record<InboxKind, string> = {
  suggestion: 'Suggestions',
  call: 'Calls',
  question: 'Questions',
  outcome: 'Undecided outcomes',
  anew: 'Start over?',
  budget: 'Budgets',
  escalation: 'Escalations',
  work: 'Work for people',
}

function Inbox({ projectId }: { projectId: string }) {
  const { kind, item } = route.useSearch()
  const decisions = useDecisions(projectId)
  const { entries, query, hasMore, more, isUnknown } = useInbox(projectId, item, decisions.settled)
  const shown = entries.filter(({ task }) => !isKind(kind) || inboxKindOf(task) === kind)
  return (
    <>
      <PageHead name="Inbox" title={<Title order={1}>Inbox</Title>}>
        <Keys />
      </PageHead>
      {query.isError && query.data && <Stale onRetry={() => void query.refetch()} />}
      <Kinds projectId={projectId} current={kind} entries={entries} hasMore={hasMore} />
      {query.isPending && <Loading lines={8} />}
      {query.isError && !query.data && (
        <Failure what="The inbox could not be read." error={query.error} onRetry={() => void query.refetch()} />
      )}
      {isUnknown && <p className={classes.note}>The thing that this address names does not exist.</p>}
      {query.data && shown.length === 0 && (
        <Empty>
          {isKind(kind)
            ? 'Nothing of this kind waits.'
            : 'Nothing waits for you. Suggestions and questions appear here.'}
        </Empty>
      )}
      <Cards projectId={projectId} entries={shown} decisions={decisions} current={item ?? null} />
      {hasMore && (
        <Group justify="center" pb="xl">
          <Button size="xs" variant="default" loading={query.isFetching} onClick={more}>
            More
          </Button>
        </Group>
      )}
      <p role="status" className="visually-hidden">
        {decisions.said}
      </p>
    </>
  )
}

const isKind = (kind: string | undefined): kind is InboxKind => inboxKinds.some((each) => each === kind)

function Keys() {
  return (
    <p className={classes.keys}>
      <kbd>j</kbd> <kbd>k</kbd> move · <kbd>a</kbd> approve · <kbd>r</kbd> reject · <kbd>x</kbd> select
    </p>
  )
}

interface KindsProps {
  projectId: string
  current: string | undefined
  entries: readonly Entry[]
  hasMore: boolean
}

/** The kinds are a filter in the address, with the number of open things of each. */
function Kinds({ projectId, current, entries, hasMore }: KindsProps) {
  const open = entries.filter(({ isOpen }) => isOpen)
  const count = (kind: InboxKind): number => open.filter(({ task }) => inboxKindOf(task) === kind).length
  // A kind whose last thing was just decided stays, as its card does, so that nothing moves under the pointer.
  const isShown = (kind: InboxKind): boolean => entries.some(({ task }) => inboxKindOf(task) === kind)
  const kinds = inboxKinds.filter((kind) => isShown(kind) || kind === current || kind === 'suggestion')
  const chip = (kind: InboxKind | null, name: string, number: number) => (
    <Link
      key={name}
      to={ROUTE}
      params={{ projectId }}
      search={kind === null ? {} : { kind }}
      className={classes.chip ?? ''}
      // The current thing is in the address too, so the link cannot know by itself whether it is the current one.
      activeOptions={{ exact: true, includeSearch: true }}
      data-chosen={(isKind(current) ? current : null) === kind || undefined}
    >
      {name}{' '}
      <span className="number">
        {number}
        {kind === null && hasMore && '+'}
      </span>
    </Link>
  )
  return (
    <nav aria-label="Kinds" className={classes.kinds}>
      {chip(null, 'All', open.length)}
      {kinds.map((kind) => chip(kind, NAMES[kind], count(kind)))}
    </nav>
  )
}

interface CardsProps {
  projectId: string
  entries: readonly Entry[]
  decisions: Decisions
  current: string | null
}

/** A stale suggestion can only be rejected. */
const canApprove = ({ task, isOpen }: Entry): boolean =>
  isOpen && task.kind === 'suggestion' && task.metadata.stale !== true

function Cards({ projectId, entries, decisions, current }: CardsProps) {
  const mayDecide = useRole(projectId) !== 'viewer'
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set())
  const [rejecting, setRejecting] = useState<Task | null>(null)
  const [asked, setAsked] = useState<Question | null>(null)
  const move = useMove(projectId)
  const approvable = mayDecide ? entries.filter(canApprove) : []
  const chosen = approvable.filter(({ task }) => selected.has(task.id))
  const ids = entries.map(({ task }) => task.id)
  const select = (id: string, isSelected: boolean): void =>
    setSelected((now) => new Set(isSelected ? [...now, id] : [...now].filter((each) => each !== id)))
  /** The next open card is the current one once this one is decided. */
  const goOn = (from: string): void => {
    const open = new Set(entries.flatMap(({ task, isOpen }) => (isOpen && task.id !== from ? [task.id] : [])))
    const next = nextOpen(ids, from, (id) => open.has(id))
    move(next ?? from, { isFocused: true })
  }
  const act = (key: 'a' | 'r' | 'x', entry: Entry): void => {
    const { task } = entry
    if (task.kind !== 'suggestion') {
      if (key === 'a') focusInside(task.id)
    } else if (key === 'r') setRejecting(task)
    else if (canApprove(entry) && key === 'x') select(task.id, !selected.has(task.id))
    else if (canApprove(entry)) void decisions.approve(task).then((isDone) => isDone && goOn(task.id))
  }
  const onKey = (key: InboxKey): void => {
    const entry = entries.find(({ task }) => task.id === current)
    if (key === 'j' || key === 'k') move(idFrom(ids, current, key === 'j' ? 1 : -1), { isFocused: true })
    else if (entry?.isOpen && mayDecide && !decisions.busy.has(entry.task.id)) act(key, entry)
  }
  useInboxKeys(onKey)
  return (
    <>
      {approvable.length > 1 && (
        <Bulk
          approvable={approvable}
          chosen={chosen}
          isBusy={chosen.some(({ task }) => decisions.busy.has(task.id))}
          onSelect={(isAll) => setSelected(new Set(isAll ? approvable.map(({ task }) => task.id) : []))}
          onApprove={() => {
            const tasks = chosen.map(({ task }) => task)
            const sure = bulkQuestion(tasks, () => decisions.approveMany(tasks))
            if (sure === null) void decisions.approveMany(tasks)
            else setAsked(sure)
          }}
        />
      )}
      <ul aria-label="Waiting" className={classes.list}>
        {entries.map((entry) => (
          <InboxCard
            key={entry.task.id}
            {...entry}
            projectId={projectId}
            decisions={decisions}
            isCurrent={entry.task.id === current}
            onFocus={() => entry.task.id !== current && move(entry.task.id, { isFocused: false })}
            isSelected={mayDecide && canApprove(entry) ? selected.has(entry.task.id) : null}
            onSelect={(isSelected) => select(entry.task.id, isSelected)}
            onReject={() => setRejecting(entry.task)}
          />
        ))}
      </ul>
      <Confirm question={asked} onClose={() => setAsked(null)} />
      {rejecting && (
        <RejectDialog
          key={rejecting.id}
          task={rejecting}
          onClose={() => {
            setRejecting(null)
            move(rejecting.id, { isFocused: true })
          }}
          onReject={async (reason) => {
            const isDone = await decisions.reject(rejecting, reason)
            setRejecting(null)
            if (isDone) goOn(rejecting.id)
            else move(rejecting.id, { isFocused: true })
          }}
        />
      )}
    </>
  )
}

/** Calls take effect outside, so several at once are asked about once more. Null if no call is among the tasks. */
function bulkQuestion(tasks: readonly Task[], onYes: () => Promise<void>): Question | null {
  const tools = tasks.flatMap((task) => suggestedCall(task)?.tool ?? [])
  if (tools.length === 0) return null
  const names = [...new Set(tools)].map((tool) => {
    const count = tools.filter((each) => each === tool).length
    return count === 1 ? showMarks(tool) : `${showMarks(tool)} (${count} times)`
  })
  return {
    title: tools.length === 1 ? 'Make this call?' : `Make ${tools.length} calls?`,
    text: `Your choice contains ${tools.length === 1 ? 'a call' : 'calls'} of ${names.join(', ')}. A call that was made cannot be taken back.`,
    action: 'Approve',
    isHarmless: true,
    onYes,
  }
}

interface BulkProps {
  approvable: readonly Entry[]
  chosen: readonly Entry[]
  isBusy: boolean
  onSelect: (isAll: boolean) => void
  onApprove: () => void
}

function Bulk({ approvable, chosen, isBusy, onSelect, onApprove }: BulkProps) {
  return (
    <Group gap="md" className={classes.bulk ?? ''}>
      <Checkbox
        size="xs"
        label="Select all"
        checked={chosen.length === approvable.length}
        indeterminate={chosen.length > 0 && chosen.length < approvable.length}
        onChange={(event) => onSelect(event.currentTarget.checked)}
      />
      {chosen.length > 0 && (
        <>
          <span className="dim number">{chosen.length} selected</span>
          <Button size="compact-sm" loading={isBusy} onClick={onApprove}>
            Approve selected
          </Button>
        </>
      )}
    </Group>
  )
}

/** Makes a card the current one, in the address too. With `isFocused` the card is shown and gets the focus. */
function useMove(projectId: string): (id: string | null, how: { isFocused: boolean }) => void {
  const navigate = useNavigate()
  const { kind } = route.useSearch()
  return (id, { isFocused }) => {
    if (id === null) return
    const search = { item: id, ...(kind === undefined ? {} : { kind }) }
    void navigate({ to: ROUTE, params: { projectId }, search, replace: true, resetScroll: false })
    if (!isFocused) return
    const card = document.getElementById(`item-${id}`)
    card?.focus({ preventScroll: true })
    card?.scrollIntoView({ block: 'nearest' })
  }
}

/** The first field or button of a card. */
function focusInside(id: string): void {
  document.getElementById(`item-${id}`)?.querySelector<HTMLElement>('textarea, input, button')?.focus()
}
