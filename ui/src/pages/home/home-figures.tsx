import { Button } from '@mantine/core'
import type { ReactNode } from 'react'
import { cost, tokens } from '../../parts/figures.ts'
import { When } from '../../parts/when.tsx'
import { type Coverage, coverageLine, nextReads } from './coverage.ts'
import { counted, sumDays } from './gather.ts'
import classes from './home-page.module.css'
import type { Visits } from './last-here.ts'
import type { ProjectNews } from './use-home.ts'

interface Props {
  news: ProjectNews[]
  visit: Visits
  coverage: Coverage
  /** Has the newest projects read, so many of them. */
  onRead: (most: number) => void
}

/** The five figures of the page, over all projects that are read. */
export function HomeFigures({ news, visit, coverage, onRead }: Props) {
  const isPending = news.some((each) => each.isPending)
  const days = sumDays(news.map(({ usage }) => usage))
  const figure = (of: Counted) => {
    const amount = news.reduce((total, each) => total + COUNTS[of](each), 0)
    const hasMore = news.some((each) => each.hasMore[of])
    const isQuiet = amount === 0 && !hasMore
    return { amount: isPending && amount === 0 ? '…' : counted(amount, hasMore), isQuiet }
  }
  return (
    <section aria-label="Figures of your projects">
      <Part coverage={coverage} onRead={onRead} />
      <dl className={classes.figures} aria-label="Figures">
        <Figure name="Waits for you" tone="blocked" {...figure('waits')} />
        <Figure name="Runs now" tone="running" {...figure('runs')} />
        <Figure name="Failed" tone="failed" {...figure('fails')}>
          {visit.isFirst ? (
            'in the last day'
          ) : (
            <>
              since your visit <When at={new Date(visit.since).toISOString()} />
            </>
          )}
        </Figure>
        {days && (
          <>
            <Figure name="Tokens today" amount={tokens(days.today.total_tokens)}>
              yesterday {tokens(days.yesterday.total_tokens)}
            </Figure>
            <Figure name="Cost today" amount={cost(days.today.cost_usd)}>
              yesterday {cost(days.yesterday.cost_usd)}
            </Figure>
          </>
        )}
      </dl>
    </section>
  )
}

/** Says which projects the figures and the lists are of, if these are not all. */
function Part({ coverage, onRead }: Pick<Props, 'coverage' | 'onRead'>) {
  const line = coverageLine(coverage)
  const next = nextReads(coverage)
  if (line === null) return null
  return (
    <p className={classes.part}>
      <span>{line}</span>
      {next && (
        <Button size="compact-sm" variant="subtle" onClick={() => onRead(next.most)}>
          {next.label}
        </Button>
      )}
    </p>
  )
}

type Counted = keyof ProjectNews['hasMore']

const COUNTS: Record<Counted, (news: ProjectNews) => number> = {
  waits: ({ waiting, alerts, shortAgents }) => waiting.length + alerts.length + shortAgents.length,
  runs: ({ runs, flows }) => runs.length + flows.length,
  fails: ({ failedRuns, failedFlows }) => failedRuns.length + failedFlows.length,
}

/** The project's own figure: "7", "20+", or null if there is nothing to count. */
export function countOf(news: ProjectNews, of: Counted): string | null {
  const amount = COUNTS[of](news)
  return amount === 0 && !news.hasMore[of] ? null : counted(amount, news.hasMore[of])
}

interface FigureProps {
  name: string
  amount: ReactNode
  tone?: string
  /** True: nothing to look at, so it has no colour. */
  isQuiet?: boolean
  children?: ReactNode
}

function Figure({ name, amount, tone, isQuiet, children }: FigureProps) {
  return (
    <div className={classes.figure}>
      <dt>{name}</dt>
      <dd>
        <span className={classes.amount} style={tone && !isQuiet ? { color: `var(--${tone})` } : {}}>
          {amount}
        </span>
        {children && <span className="dim number">{children}</span>}
      </dd>
    </div>
  )
}
