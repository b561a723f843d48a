import type { ReactNode } from 'react'
import type { Home, HomeCount } from '../../../../src/kernel/home.ts'
import { cost, tokens } from '../../parts/figures.ts'
import { When } from '../../parts/when.tsx'
import { counted, sumDays } from './gather.ts'
import classes from './home-page.module.css'
import type { Visits } from './last-here.ts'

type Counted = 'waits' | 'runs' | 'fails'

/** The five figures of the page, over all projects. */
export function HomeFigures({ home, visit }: { home: Home | undefined; visit: Visits }) {
  const days = sumDays(home?.projects.items.map(({ usage }) => usage) ?? [])
  const figure = (of: Counted) => {
    if (!home) return { amount: '…', isQuiet: true }
    if (home.incomplete.includes(of)) return { amount: '–', isQuiet: true }
    return { amount: counted(home[of]), isQuiet: home[of].count === 0 }
  }
  return (
    <section aria-label="Figures of your projects">
      {home?.projects.has_more && (
        <p className={classes.part}>Of the newest {home.projects.items.length} of your projects.</p>
      )}
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

/** A project's own figure: "7 failed", "100+ failed", or nothing if there is nothing to tell. */
export const worded = (count: HomeCount | null, word: string): string =>
  count === null || count.count === 0 ? '' : `${counted(count)} ${word}`

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
