// How many tasks were under way at each moment, above the bars.
import type { FlowRun } from '../../../../src/kernel/flow-run.ts'
import { useNow } from '../../parts/when.tsx'
import classes from './timeline.module.css'
import { beginOf, busyIn, spanOf } from './timeline-scale.ts'
import { useFlowStore, useTotals } from './use-flow-store.ts'

const PARTS = 120

export function BusyRow({ run, windowMs }: { run: FlowRun; windowMs: number | null }) {
  const store = useFlowStore()
  useTotals()
  const now = useNow()
  const busy = busyIn(store.tasks(), spanOf(run, windowMs, Math.max(now, beginOf(run))), PARTS)
  const peak = Math.max(1, ...busy)
  const steps = busy.map((count, part) => `H${part}V${(100 - (92 * count) / peak).toFixed(1)}`).join('')
  return (
    <div className={classes.busy}>
      <span className={classes.what}>
        <span className={classes.name}>Workers busy</span>
        <span className="dim number">peak {Math.max(0, ...busy)}</span>
      </span>
      <svg className={classes.area} viewBox={`0 0 ${PARTS} 100`} preserveAspectRatio="none" aria-hidden>
        <path d={`M0 100${steps}H${PARTS}V100Z`} />
      </svg>
    </div>
  )
}
