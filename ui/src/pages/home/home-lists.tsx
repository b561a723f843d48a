// The three lists of the home page, newest first. Every row leads to its page.
import { Button, Title } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import { CircleHelp, Coins, FilePen, type LucideIcon, SquareCheck, TriangleAlert } from 'lucide-react'
import { Fragment, type ReactNode, useState } from 'react'
import type { Agent } from '../../../../src/kernel/agent.ts'
import type { FlowRun } from '../../../../src/kernel/flow-run.ts'
import type { Run } from '../../../../src/kernel/run.ts'
import type { Task } from '../../../../src/kernel/task.ts'
import { useNamesOfRuns } from '../../api/agent-names.ts'
import type { OpenAlert } from '../../api/home.ts'
import { duration, inputLine, oneLine } from '../../parts/figures.ts'
import { Loading } from '../../parts/states.tsx'
import { Status } from '../../parts/status.tsx'
import { Elapsed, useNow, When } from '../../parts/when.tsx'
import { counted, percentOf, usedShare } from './gather.ts'
import classes from './home-page.module.css'
import type { Visits } from './last-here.ts'
import type { ProjectNews } from './use-home.ts'

const SHOWN_AT_FIRST = 6

interface ListsProps {
  news: ProjectNews[]
  /** True: there are projects that are not read. */
  isPart: boolean
}

interface Item {
  id: string
  at: string
  row: ReactNode
}

export function WaitingList({ news, isPart }: ListsProps) {
  const items = news.flatMap((each) => [
    ...each.waiting.map<Item>((task) => ({
      id: task.id,
      at: task.created_at,
      row: <TaskRow task={task} news={each} isAlone={news.length === 1} />,
    })),
    ...each.alerts.map<Item>((alert) => ({
      id: alert.id,
      at: alert.created_at,
      row: <AlertRow alert={alert} news={each} />,
    })),
    ...each.shortAgents.map<Item>((agent) => ({
      id: agent.id,
      at: agent.last_worked_at ?? agent.created_at,
      row: <ShortRow agent={agent} news={each} isAlone={news.length === 1} />,
    })),
  ])
  const none = `Nothing waits for you${where(isPart)}.`
  return <List name="Waits for you" of="waits" items={items} news={news} none={none} />
}

export function RunningList({ news, isPart }: ListsProps) {
  const isAlone = news.length === 1
  const items = news.flatMap((each) => [
    ...each.flows.map<Item>((run) => ({
      id: run.id,
      at: run.created_at,
      row: <RunningFlowRow run={run} news={each} isAlone={isAlone} />,
    })),
    ...each.runs.map<Item>((run) => ({
      id: run.id,
      at: run.created_at,
      row: <RunRow run={run} news={each} isAlone={isAlone} />,
    })),
  ])
  const none = `Nothing runs${where(isPart)} at the moment.`
  return <List name="Runs now" of="runs" items={items} news={news} none={none} />
}

export function FailedList({ news, isPart, visit }: ListsProps & { visit: Visits }) {
  const isAlone = news.length === 1
  const items = news.flatMap((each) => [
    ...each.failedFlows.map<Item>((run) => ({
      id: run.id,
      at: run.completed_at ?? run.created_at,
      row: <FailedFlowRow run={run} news={each} isAlone={isAlone} />,
    })),
    ...each.failedRuns.map<Item>((run) => ({
      id: run.id,
      at: run.completed_at ?? run.created_at,
      row: <RunRow run={run} news={each} isAlone={isAlone} />,
    })),
  ])
  return (
    <List
      name={visit.isFirst ? 'Failed in the last day' : 'Failed since you were last here'}
      of="fails"
      items={items}
      news={news}
      none={
        visit.isFirst ? (
          `Nothing failed${where(isPart)} in the last day.`
        ) : (
          <>
            Nothing failed{where(isPart)} since your visit <When at={new Date(visit.since).toISOString()} />.
          </>
        )
      }
    />
  )
}

const where = (isPart: boolean): string => (isPart ? ' in these projects' : '')

interface ListProps {
  name: string
  of: keyof ProjectNews['hasMore']
  items: Item[]
  news: ProjectNews[]
  none: ReactNode
}

function List({ name, of, items, news, none }: ListProps) {
  const [isWhole, setIsWhole] = useState(false)
  const sorted = items.toSorted((a, b) => b.at.localeCompare(a.at))
  const shown = isWhole ? sorted : sorted.slice(0, SHOWN_AT_FIRST)
  const hasMore = news.some((each) => each.hasMore[of])
  const isPending = news.some((each) => each.isPending)
  return (
    <section aria-label={name}>
      <Title order={2}>{name}</Title>
      {items.length === 0 && isPending && <Loading lines={2} />}
      {items.length === 0 && !isPending && (
        // The newest ones may all be parts of flows or of other runs, which are not listed.
        <p className={classes.none}>{hasMore ? 'Nothing among the newest ones, and older ones are not read.' : none}</p>
      )}
      {items.length > 0 && (
        <ul className={classes.list}>
          {shown.map(({ id, row }) => (
            <li key={id}>{row}</li>
          ))}
        </ul>
      )}
      {sorted.length > shown.length && (
        <Button size="compact-sm" variant="subtle" mt={4} onClick={() => setIsWhole(true)}>
          {counted(sorted.length - shown.length, hasMore)} more
        </Button>
      )}
      {hasMore && items.length > 0 && sorted.length === shown.length && (
        <p className={classes.part}>Only the newest of each project are listed.</p>
      )}
    </section>
  )
}

const KINDS: Record<Task['kind'], { icon: LucideIcon; word: string }> = {
  escalation: { icon: CircleHelp, word: 'question' },
  suggestion: { icon: FilePen, word: 'suggestion' },
  work: { icon: SquareCheck, word: 'task' },
}

interface RowProps {
  news: ProjectNews
  /** True: there is one project, so its name says nothing. */
  isAlone: boolean
}

function TaskRow({ task, news, isAlone }: RowProps & { task: Task }) {
  const { icon: Icon, word } = KINDS[task.kind]
  return (
    <Link
      to="/projects/$projectId/inbox"
      params={{ projectId: news.project.id }}
      search={{ item: task.id }}
      className={classes.item ?? ''}
    >
      <span className={classes.line}>
        <Icon size={14} color="var(--blocked)" aria-hidden style={{ flexShrink: 0 }} />
        <span className={`${classes.name} cut`}>{task.title}</span>
      </span>
      <Under of={[word, isAlone ? null : news.project.name, <When key="at" at={task.created_at} />]} />
    </Link>
  )
}

function AlertRow({ alert, news }: { alert: OpenAlert; news: ProjectNews }) {
  const run = news.flows.find(({ id }) => id === alert.flow_run_id)
  return (
    <Link
      to="/projects/$projectId/flows/$flowRunId"
      params={{ projectId: news.project.id, flowRunId: alert.flow_run_id }}
      className={classes.item ?? ''}
    >
      <span className={classes.line}>
        <TriangleAlert size={14} color="var(--blocked)" aria-hidden style={{ flexShrink: 0 }} />
        <span className={`${classes.name} cut`}>{run ? news.flowName(run) : 'A flow'} is slower than expected</span>
      </span>
      <Under of={[oneLine(alert.suspected_cause, 90), <When key="at" at={alert.created_at} />]} />
    </Link>
  )
}

/** A warning: the agent still works, and stops when its tokens are used up. */
function ShortRow({ agent, news, isAlone }: RowProps & { agent: Agent }) {
  return (
    <Link
      to="/projects/$projectId/agents/$agentId"
      params={{ projectId: news.project.id, agentId: agent.id }}
      search={{ tab: 'budget' }}
      className={classes.item ?? ''}
    >
      <span className={classes.line}>
        <Coins size={14} color="var(--blocked)" aria-hidden style={{ flexShrink: 0 }} />
        <span className={`${classes.name} cut`}>
          {agent.name} has used {usedShare(agent)} % of its tokens
        </span>
      </span>
      <Under of={['budget', isAlone ? null : news.project.name, <When key="at" at={agent.last_worked_at} />]} />
    </Link>
  )
}

function RunRow({ run, news, isAlone }: RowProps & { run: Run }) {
  const name = useNamesOfRuns([run])(run)
  const isRunning = run.status === 'running'
  const why = run.error_message ?? run.pause_reason?.replaceAll('_', ' ') ?? inputLine(run, 90)
  return (
    <Link
      to="/projects/$projectId/runs/$runId"
      params={{ projectId: news.project.id, runId: run.id }}
      className={classes.item ?? ''}
    >
      <span className={classes.line}>
        <span className={`${classes.name} cut`}>{name}</span>
        <Status of={run.status} />
      </span>
      <Under
        of={[
          isRunning ? inputLine(run, 90) : oneLine(why, 90),
          isAlone ? null : news.project.name,
          isRunning ? <Elapsed key="at" from={run.started_at} ms={null} /> : <When key="at" at={run.completed_at} />,
        ]}
      />
    </Link>
  )
}

function FailedFlowRow({ run, news, isAlone }: RowProps & { run: FlowRun }) {
  return (
    <FlowLink run={run} news={news}>
      <Under
        of={[
          run.error === null ? null : oneLine(run.error, 90),
          isAlone ? null : news.project.name,
          <When key="at" at={run.completed_at} />,
        ]}
      />
    </FlowLink>
  )
}

function RunningFlowRow({ run, news, isAlone }: RowProps & { run: FlowRun }) {
  const now = useNow()
  const percent = percentOf(run.progress)
  const left = run.eta === null ? null : Math.max(0, Date.parse(run.eta) - now)
  const { completed, total } = run.progress
  return (
    <FlowLink run={run} news={news}>
      <Under
        of={[
          `${completed} of ${total} done`,
          left === null ? null : `ETA ${duration(left)}`,
          isAlone ? null : news.project.name,
          <Elapsed key="at" from={run.started_at} ms={null} />,
        ]}
      />
      <div
        className={classes.bar}
        role="progressbar"
        aria-label={`Progress of ${news.flowName(run)}`}
        aria-valuenow={percent}
        aria-valuemin={0}
        aria-valuemax={100}
      >
        <span style={{ width: `${percent}%` }} />
      </div>
    </FlowLink>
  )
}

function FlowLink({ run, news, children }: { run: FlowRun; news: ProjectNews; children: ReactNode }) {
  return (
    <Link
      to="/projects/$projectId/flows/$flowRunId"
      params={{ projectId: news.project.id, flowRunId: run.id }}
      className={classes.item ?? ''}
    >
      <span className={classes.line}>
        <span className={`${classes.name} cut`}>{news.flowName(run)}</span>
        <Status of={run.status} />
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
