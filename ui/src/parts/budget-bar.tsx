// How much of an agent's tokens is used: amber at 90 %, red at 95 %.

import classes from './budget-bar.module.css'
import { tokens } from './figures.ts'

const WARN = 90
const ALARM = 95

interface Props {
  used: number
  /** Null: the agent has no limit. */
  of: number | null
  /** Without the words, for rows that are narrow. */
  isBare?: boolean
}

export function BudgetBar({ used, of, isBare = false }: Props) {
  if (of === null) return <span className="dim number">{isBare ? 'no limit' : `${tokens(used)} tokens, no limit`}</span>
  const share = of === 0 ? 100 : Math.min(100, (100 * used) / of)
  const tone = share >= ALARM ? 'failed' : share >= WARN ? 'blocked' : 'running'
  const text = `${tokens(used)} of ${tokens(of)} tokens, ${Math.floor(share)} %`
  return (
    <span className={classes.budget} title={text}>
      <span className={classes.bar} data-tone={tone} aria-hidden>
        <span style={{ transform: `scaleX(${share / 100})`, background: `var(--${tone})` }} />
      </span>
      <span className={isBare ? 'visually-hidden' : 'number'}>{text}</span>
    </span>
  )
}
