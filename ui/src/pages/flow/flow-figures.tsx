// Five figures at the first glance, and the tasks by status: a bar that is also the filter.
import { UnstyledButton } from '@mantine/core'
import type { ReactNode } from 'react'
import type { FlowRun } from '../../../../src/kernel/flow-run.ts'
import { cost, duration, tokens } from '../../parts/figures.ts'
import { etaOf, percentDone } from '../../parts/flow-progress.ts'
import { Status } from '../../parts/status.tsx'
import { Elapsed, useNow } from '../../parts/when.tsx'
import classes from './flow-page.module.css'
import { type ShownStatus, shownStatuses } from './flow-store.ts'
import { shownCounts } from './shown-counts.ts'
import { useTotals } from './use-flow-store.ts'

interface FiguresProps {
  run: FlowRun
  /** The status as people are told it. */
  status: string
  /** The project is halted, so the flow run does not go on. */
  isHalted: boolean
}

export function FlowFigures({ run, status, isHalted }: FiguresProps) {
  const { usage } = run
  return (
    <dl className={classes.figures} data-tour="figures">
      <Figure name="Elapsed" detail={`timeout ${duration(run.timeout)}`}>
        <Elapsed from={run.started_at} ms={run.duration} />
      </Figure>
      <Eta run={run} status={status} />
      <Parallelism run={run} isHalted={isHalted} />
      <Figure name="Tokens" detail={`${tokens(usage.input_tokens)} in, ${tokens(usage.output_tokens)} out`}>
        {usage.estimated && '≈ '}
        {tokens(usage.total_tokens)}
      </Figure>
      <Figure name="Cost" detail={costDetail(usage)}>
        {cost(usage.cost_usd)}
      </Figure>
    </dl>
  )
}

function costDetail({ cost_usd, total_tokens }: FlowRun['usage']): string {
  if (cost_usd !== null) return ''
  return total_tokens === 0 ? 'no tokens were used' : 'the model has no price'
}

function Figure({ name, detail, children }: { name: string; detail: string; children: ReactNode }) {
  return (
    <div>
      <dt className="dim">{name}</dt>
      <dd className="number">
        <strong>{children}</strong> <span className="dim">{detail}</span>
      </dd>
    </div>
  )
}

function Eta({ run, status }: Omit<FiguresProps, 'isHalted'>) {
  const now = useNow()
  useTotals()
  return (
    <Figure name="ETA" detail={`${percentDone(run)}% done`}>
      {etaOf(status, run.eta, now) ?? '–'}
    </Figure>
  )
}

function Parallelism({ run, isHalted }: Omit<FiguresProps, 'status'>) {
  const now = useNow()
  const { workedMs, startSum, underWay, counts } = useTotals()
  const begin = Date.parse(run.started_at ?? run.created_at)
  const until = run.completed_at === null ? now : Date.parse(run.completed_at)
  const elapsed = Math.max(1, until - begin)
  const worked = workedMs + Math.max(0, underWay * until - startSum)
  const busy = counts.running + counts.blocked
  const isAtWork = run.completed_at === null && !isHalted
  return (
    <Figure
      name="Parallelism"
      detail={isAtWork ? `${busy} of ${run.workers} workers busy` : `at most ${run.workers} workers`}
    >
      {run.started_at === null ? '–' : `${(worked / elapsed).toFixed(1)}×`}
    </Figure>
  )
}

interface BarProps {
  run: FlowRun
  status: string | undefined
  onFilter: (status: ShownStatus | undefined) => void
}

export function StatusBar({ run, status, onFilter }: BarProps) {
  const { counts, unlisted } = shownCounts(run, useTotals())
  const shown = shownStatuses.filter((each) => counts[each] > 0 || !['blocked', 'skipped'].includes(each))
  return (
    <div className={classes.bar}>
      <div className={classes.segments} aria-hidden>
        {shown.map((each) => (
          <span key={each} data-status={each} style={{ flexGrow: counts[each] }} />
        ))}
      </div>
      <fieldset className={classes.counts} aria-label="Tasks by status">
        {shown.map((each) => (
          <UnstyledButton
            key={each}
            className={classes.count}
            data-count={each}
            aria-pressed={status === each}
            onClick={() => onFilter(status === each ? undefined : each)}
          >
            {/* A task of a flow is blocked by nothing but a wait of its run. */}
            <Status of={each === 'blocked' ? 'waiting' : each} /> <strong className="number">{counts[each]}</strong>
          </UnstyledButton>
        ))}
      </fieldset>
      {status === 'pending' && unlisted > 0 && (
        <div className="dim">
          {unlisted === 1 ? '1 pending task is' : `${unlisted} pending tasks are`} not in the list yet: a task of a plan
          is listed when it begins.
        </div>
      )}
    </div>
  )
}
