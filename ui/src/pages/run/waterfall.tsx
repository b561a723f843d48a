// The time of a run: a bar for each model call and tool call, on one scale.
import type { Step } from '../../api/shapes.ts'
import { duration } from '../../parts/figures.ts'
import classes from './waterfall.module.css'

interface Bar {
  key: number
  name: string
  kind: Step['kind']
  from: number
  ms: number
}

export function Waterfall({ steps }: { steps: readonly Step[] }) {
  const bars = barsOf(steps)
  const begin = Math.min(...bars.map(({ from }) => from))
  const span = Math.max(1, ...bars.map(({ from, ms }) => from + ms - begin))
  if (bars.length === 0) return <p className="dim">Nothing was done yet.</p>
  return (
    <ol className={classes.list} aria-label="Waterfall">
      {bars.map(({ key, name, kind, from, ms }) => (
        <li key={key} className={classes.row}>
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
  )
}

export function barsOf(steps: readonly Step[]): Bar[] {
  return steps.map((step) => ({
    key: step.seq,
    name: step.kind === 'model' ? `Step ${step.step}` : step.kind === 'tool' ? step.name : 'flow',
    kind: step.kind,
    from: Date.parse(step.started_at),
    ms: step.duration ?? 0,
  }))
}
