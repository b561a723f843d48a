// The time of a run: a bar for each model call, tool call and wait, on one scale.
import type { RunWait } from '../../../../src/kernel/run.ts'
import type { Step } from '../../api/shapes.ts'
import { duration } from '../../parts/figures.ts'
import { useNow } from '../../parts/when.tsx'
import { type Bar, barsOf } from './bars.ts'
import classes from './waterfall.module.css'

interface Props {
  steps: readonly Step[]
  waits: readonly RunWait[]
}

export function Waterfall({ steps, waits }: Props) {
  const isWaiting = waits.some((wait) => wait.duration === null)
  if (isWaiting) return <LiveBars steps={steps} waits={waits} />
  return <Bars bars={barsOf(steps, waits, 0)} />
}

/** The bar of a wait under way grows with the time. */
function LiveBars({ steps, waits }: Props) {
  return <Bars bars={barsOf(steps, waits, useNow())} />
}

const KINDS = [
  ['model', 'Model'],
  ['tool', 'Tools'],
  ['flow', 'Flow'],
  ['wait', 'Waiting'],
] as const

function Bars({ bars }: { bars: readonly Bar[] }) {
  const begin = Math.min(...bars.map(({ from }) => from))
  const span = Math.max(1, ...bars.map(({ from, ms }) => from + ms - begin))
  if (bars.length === 0) return <p className="dim">Nothing was done yet.</p>
  return (
    <>
      <ul className={classes.legend} aria-label="Colours">
        {KINDS.filter(([kind]) => bars.some((bar) => bar.kind === kind)).map(([kind, name]) => (
          <li key={kind} className="dim">
            <span className={classes.swatch} data-kind={kind} aria-hidden />
            {name}
          </li>
        ))}
      </ul>
      <ol className={classes.list} aria-label="Waterfall">
        {bars.map(({ key, name, about, kind, from, ms }) => (
          <li key={key} className={classes.row} title={about}>
            <span className="cut">{name}</span>
            <span className={classes.track} aria-hidden>
              <span
                className={classes.bar}
                data-kind={kind}
                style={{ left: `${(100 * (from - begin)) / span}%`, width: `${Math.max(0.8, (100 * ms) / span)}%` }}
              />
            </span>
            <span className="dim number">{duration(ms)}</span>
          </li>
        ))}
      </ol>
    </>
  )
}
