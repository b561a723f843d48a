import type { ReactNode } from 'react'
import { cost, tokens } from '../../parts/figures.ts'
import { When } from '../../parts/when.tsx'
import { sumDays } from './gather.ts'
import classes from './home-page.module.css'
import type { ProjectNews } from './use-home.ts'

/** The five figures of the page, over all projects that are shown. */
export function HomeFigures({ news, since }: { news: ProjectNews[]; since: number }) {
  const count = (of: (each: ProjectNews) => number): number => news.reduce((total, each) => total + of(each), 0)
  const isPending = news.some((each) => each.isPending)
  const days = sumDays(news.map(({ usage }) => usage))
  const shown = (number: number): ReactNode => (isPending && number === 0 ? '…' : number)
  return (
    <dl className={classes.figures} aria-label="Figures">
      <Figure name="Waits for you" tone="blocked" isQuiet={count(waits) === 0} amount={shown(count(waits))} />
      <Figure name="Runs now" tone="running" isQuiet={count(runs) === 0} amount={shown(count(runs))} />
      <Figure name="Failed" tone="failed" isQuiet={count(fails) === 0} amount={shown(count(fails))}>
        since <When at={new Date(since).toISOString()} />
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
  )
}

export const waits = ({ waiting, alerts, shortAgents }: ProjectNews): number =>
  waiting.length + alerts.length + shortAgents.length
export const runs = (news: ProjectNews): number => news.runs.length + news.flows.length
export const fails = ({ failedRuns, failedFlows }: ProjectNews): number => failedRuns.length + failedFlows.length

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
