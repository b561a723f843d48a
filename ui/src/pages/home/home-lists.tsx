// The lists of the home page, newest first. Every row leads to its page.
import { Button, Title } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import { CircleHelp, Coins, FilePen, type LucideIcon, SquareCheck, TriangleAlert } from 'lucide-react'
import { Fragment, type ReactNode, useState } from 'react'
import type {
  AgentOfHome,
  AlertOfHome,
  FlowRunOfHome,
  Home,
  RunItem,
  RunOfHome,
  TaskOfHome,
  WaitItem,
} from '../../../../src/kernel/home.ts'
import type { Project } from '../../../../src/kernel/project.ts'
import { providerWords } from '../../../../src/kernel/why-stopped.ts'
import { duration, oneLine } from '../../parts/figures.ts'
import { percentDone } from '../../parts/flow-progress.ts'
import { NextTry } from '../../parts/next-try.tsx'
import { RunStatus } from '../../parts/run-status.tsx'
import { Loading } from '../../parts/states.tsx'
import { Status } from '../../parts/status.tsx'
import { waitWords } from '../../parts/wait-words.ts'
import { Elapsed, useNow, When } from '../../parts/when.tsx'
import { usedShare } from './gather.ts'
import classes from './home-page.module.css'
import type { Visits } from './last-here.ts'

const SHOWN_AT_FIRST = 6

interface ListsProps {
  /** Undefined until it is read. */
  home: Home | undefined
  projects: readonly Project[]
}

/** The project of a row. */
interface Place {
  projectId: string
  /** Null if there is one project, whose name says nothing, and while the name is not known. */
  projectName: string | null
  isHalted: boolean
}

interface Row {
  id: string
  content: ReactNode
}

export function WaitingList({ home, projects }: ListsProps) {
  const toRow = (item: WaitItem): Row => {
    const place = placeOf(item, projects, home)
    switch (item.kind) {
      case 'task':
        return { id: item.task.id, content: <TaskRow task={item.task} place={place} /> }
      case 'alert':
        return { id: item.alert.id, content: <AlertRow alert={item.alert} place={place} /> }
      case 'agent':
        return { id: item.agent.id, content: <ShortRow agent={item.agent} place={place} /> }
    }
  }
  const rows = home?.waits.items.map(toRow)
  return <List name="Waits for you" of="waits" home={home} rows={rows} none={`Nothing waits for you${where(home)}.`} />
}

export function RunningList({ home, projects }: ListsProps) {
  const toRow = (item: RunItem): Row => {
    const place = placeOf(item, projects, home)
    return item.kind === 'run'
      ? { id: item.run.id, content: <RunRow run={item.run} place={place} /> }
      : { id: item.flow_run.id, content: <RunningFlowRow run={item.flow_run} place={place} /> }
  }
  const rows = home?.runs.items.filter((item) => !isFlowWaiting(item)).map(toRow)
  const none = `Nothing runs${where(home)} at the moment.`
  return <List name="Runs now" of="runs" home={home} rows={rows} none={none} />
}

/** A running flow run of which a leaf waits for its provider stands with the waits. */
const isFlowWaiting = (item: RunItem): boolean => item.kind === 'flow_run' && item.flow_run.waiting_for !== null

/**
 * Runs and flow runs that need nobody: they try their provider again by themselves. The list is left out if there are
 * none.
 */
export function ProviderWaitList({ home, projects }: ListsProps) {
  if (!home) return null
  const rows = [...home.runs.items.filter(isFlowWaiting), ...home.provider_waits.items].map((item) => {
    const place = placeOf(item, projects, home)
    return item.kind === 'run'
      ? { id: item.run.id, content: <RunRow run={item.run} place={place} /> }
      : { id: item.flow_run.id, content: <WaitingFlowRow run={item.flow_run} place={place} /> }
  })
  if (rows.length === 0) return null
  return <List name="Waiting for a provider" of="provider_waits" home={home} rows={rows} none={null} />
}

export function FailedList({ home, projects, visit }: ListsProps & { visit: Visits }) {
  const toRow = (item: RunItem): Row => {
    const place = placeOf(item, projects, home)
    return item.kind === 'run'
      ? { id: item.run.id, content: <RunRow run={item.run} place={place} /> }
      : { id: item.flow_run.id, content: <FailedFlowRow run={item.flow_run} place={place} /> }
  }
  return (
    <List
      name={visit.isFirst ? 'Failed or stopped in the last day' : 'Failed or stopped since you were last here'}
      of="fails"
      home={home}
      rows={home?.fails.items.map(toRow)}
      none={
        visit.isFirst ? (
          `Nothing failed${where(home)} in the last day.`
        ) : (
          <>
            Nothing failed{where(home)} since your visit <When at={new Date(visit.since).toISOString()} />.
          </>
        )
      }
    />
  )
}

const where = (home: Home | undefined): string => (home?.projects.has_more ? ' in these projects' : '')

function placeOf(
  { project_id: projectId }: { project_id: string },
  projects: readonly Project[],
  home: Home | undefined,
): Place {
  const project = projects.find(({ id }) => id === projectId)
  const figures = home?.projects.items.find((each) => each.project_id === projectId)
  return {
    projectId,
    projectName: projects.length === 1 ? null : (project?.name ?? null),
    isHalted: typeof figures?.halted_at === 'string',
  }
}

interface ListProps {
  name: string
  of: 'waits' | 'runs' | 'provider_waits' | 'fails'
  home: Home | undefined
  rows: Row[] | undefined
  none: ReactNode
}

function List({ name, of, home, rows = [], none }: ListProps) {
  const [isWhole, setIsWhole] = useState(false)
  const shown = isWhole ? rows : rows.slice(0, SHOWN_AT_FIRST)
  const hidden = rows.length - shown.length
  const isLeftOut = home?.incomplete.includes(of) === true
  const isCut = home !== undefined && home[of].count > Math.max(rows.length, home[of].items.length)
  return (
    <section aria-label={name}>
      <Title order={2}>{name}</Title>
      {!home && <Loading lines={2} />}
      {isLeftOut && <p className={classes.none}>This took too long to read. It is read again in a moment.</p>}
      {home && !isLeftOut && rows.length === 0 && <p className={classes.none}>{none}</p>}
      {rows.length > 0 && (
        <ul className={classes.list}>
          {shown.map(({ id, content }) => (
            <li key={id}>{content}</li>
          ))}
        </ul>
      )}
      {hidden > 0 && (
        <Button size="compact-sm" variant="subtle" mt={4} onClick={() => setIsWhole(true)}>
          {hidden} more
        </Button>
      )}
      {isCut && hidden === 0 && <p className={classes.part}>Only the newest {rows.length} are listed.</p>}
    </section>
  )
}

const KINDS: Record<TaskOfHome['kind'], { icon: LucideIcon; word: string }> = {
  escalation: { icon: CircleHelp, word: 'question' },
  suggestion: { icon: FilePen, word: 'suggestion' },
  work: { icon: SquareCheck, word: 'task' },
}

function TaskRow({ task, place }: { task: TaskOfHome; place: Place }) {
  const { icon: Icon, word } = KINDS[task.kind]
  return (
    <Link
      to="/projects/$projectId/inbox"
      params={{ projectId: place.projectId }}
      search={{ item: task.id }}
      className={classes.item ?? ''}
    >
      <span className={classes.line}>
        <Icon size={14} color="var(--blocked)" aria-hidden style={{ flexShrink: 0 }} />
        <span className={`${classes.name} cut`}>{task.title}</span>
      </span>
      <Under of={[word, place.projectName, <When key="at" at={task.created_at} />]} />
    </Link>
  )
}

function AlertRow({ alert, place }: { alert: AlertOfHome; place: Place }) {
  return (
    <Link
      to="/projects/$projectId/flows/$flowRunId"
      params={{ projectId: place.projectId, flowRunId: alert.flow_run_id }}
      className={classes.item ?? ''}
    >
      <span className={classes.line}>
        <TriangleAlert size={14} color="var(--blocked)" aria-hidden style={{ flexShrink: 0 }} />
        <span className={`${classes.name} cut`}>{flowName(alert)} is slower than expected</span>
      </span>
      <Under of={[oneLine(alert.suspected_cause, 90), place.projectName, <When key="at" at={alert.created_at} />]} />
    </Link>
  )
}

/** A warning: the agent still works, and stops when its tokens are used up. */
function ShortRow({ agent, place }: { agent: AgentOfHome; place: Place }) {
  return (
    <Link
      to="/projects/$projectId/agents/$agentId"
      params={{ projectId: place.projectId, agentId: agent.id }}
      search={{ tab: 'budget' }}
      className={classes.item ?? ''}
    >
      <span className={classes.line}>
        <Coins size={14} color="var(--blocked)" aria-hidden style={{ flexShrink: 0 }} />
        <span className={`${classes.name} cut`}>
          {agent.name} has used {usedShare(agent)} % of its tokens
        </span>
      </span>
      <Under of={['budget', place.projectName, <When key="at" at={agent.last_worked_at} />]} />
    </Link>
  )
}

function RunRow({ run, place }: { run: RunOfHome; place: Place }) {
  const isRunning = run.status === 'running'
  const input = run.trigger_type === 'schedule' ? 'by its schedule' : (run.input_line ?? '')
  const isWaiting = run.is_wait && run.waiting_for !== null
  const why = (isWaiting ? waitWords(run) : run.error_message) ?? waitWords(run) ?? input
  return (
    <Link
      to="/projects/$projectId/runs/$runId"
      params={{ projectId: place.projectId, runId: run.id }}
      className={classes.item ?? ''}
    >
      <span className={classes.line}>
        <span className={`${classes.name} cut`}>{runName(run)}</span>
        <RunStatus run={run} />
      </span>
      <Under
        of={[
          oneLine(isRunning ? input : why, 90),
          place.projectName,
          run.next_try_at !== null ? (
            <NextTry key="at" at={run.next_try_at} />
          ) : isRunning ? (
            <Elapsed key="at" from={run.started_at} ms={null} />
          ) : (
            <When key="at" at={run.completed_at} />
          ),
        ]}
      />
    </Link>
  )
}

const runName = ({ agent_id, agent_name }: RunOfHome): string =>
  agent_id === null ? 'Supervisor' : (agent_name ?? 'Deleted agent')

const flowName = ({ flow_name, pattern }: Pick<FlowRunOfHome, 'flow_name' | 'pattern'>): string =>
  flow_name ?? pattern.replaceAll('_', ' ')

/** The error of a flow whose leaf stopped names a run by its id; the page of the flow leads there. */
const withoutIds = (error: string): string =>
  error.replace(
    /The run [0-9a-f-]{36} is paused \(([^)]*)\)/,
    (_, reason: string) => `paused (${reason.replaceAll('_', ' ')})`,
  )

function FailedFlowRow({ run, place }: { run: FlowRunOfHome; place: Place }) {
  return (
    <FlowLink run={run} place={place}>
      <Under
        of={[
          run.error === null ? null : oneLine(withoutIds(run.error), 90),
          place.projectName,
          <When key="at" at={run.completed_at} />,
        ]}
      />
    </FlowLink>
  )
}

function RunningFlowRow({ run, place }: { run: FlowRunOfHome; place: Place }) {
  const now = useNow()
  const percent = percentDone(run)
  // Nothing goes on in a halted project, so nobody knows the end.
  const left = run.eta === null || place.isHalted ? null : Math.max(0, Date.parse(run.eta) - now)
  const { completed, total } = run.progress
  return (
    <FlowLink run={run} place={place}>
      <Under
        of={[
          `${completed} of ${total} done`,
          left === null ? null : `ETA ${duration(left)}`,
          place.projectName,
          <Elapsed key="at" from={run.started_at} ms={null} />,
        ]}
      />
      <div
        className={classes.bar}
        role="progressbar"
        aria-label={`Progress of ${flowName(run)}`}
        aria-valuenow={percent}
        aria-valuemin={0}
        aria-valuemax={100}
      >
        <span style={{ width: `${percent}%` }} />
      </div>
    </FlowLink>
  )
}

function WaitingFlowRow({ run, place }: { run: FlowRunOfHome; place: Place }) {
  const { waiting_for, wait_message, next_try_at: next } = run
  return (
    <FlowLink run={run} place={place}>
      <Under
        of={[
          oneLine(`waits for ${waiting_for}${providerWords({ waiting_for, wait_message }) ?? ''}`, 90),
          place.projectName,
          next === null ? <Elapsed key="at" from={run.started_at} ms={null} /> : <NextTry key="at" at={next} />,
        ]}
      />
    </FlowLink>
  )
}

function FlowLink({ run, place, children }: { run: FlowRunOfHome; place: Place; children: ReactNode }) {
  return (
    <Link
      to="/projects/$projectId/flows/$flowRunId"
      params={{ projectId: place.projectId, flowRunId: run.id }}
      className={classes.item ?? ''}
    >
      <span className={classes.line}>
        <span className={`${classes.name} cut`}>{flowName(run)}</span>
        <Status of={place.isHalted && run.status === 'running' ? 'halted' : run.waiting_for ? 'waiting' : run.status} />
      </span>
      {children}
    </Link>
  )
}

/** The second line of a row. */
function Under({ of: parts }: { of: ReactNode[] }) {
  const shown = parts.filter((part) => part !== null && part !== '')
  return (
    <span className="dim">
      {shown.map((part, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the parts of a row keep their order
        <Fragment key={at}>
          {at > 0 && ' · '}
          {part}
        </Fragment>
      ))}
    </span>
  )
}
