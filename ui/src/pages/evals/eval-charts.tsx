// The figures of the comparison as bars. The table has the same figures, so the charts are for the eye alone.
import '@mantine/charts/styles.css'
import { BarChart } from '@mantine/charts'
import type { Eval } from '../../../../src/kernel/eval.ts'
import { duration, tokens } from '../../parts/figures.ts'
import classes from './evals.module.css'

const COLOURS = ['running', 'completed', 'paused', 'blocked', 'failed', 'pending'].map((tone) => `var(--${tone})`)

type Variant = Eval['variants'][string]

const SHARES: { name: string; of: (variant: Variant) => number | null }[] = [
  { name: 'Passed', of: ({ pass_rate }) => pass_rate },
  { name: 'Status', of: ({ correctness }) => correctness.status },
  { name: 'Route', of: ({ correctness }) => correctness.routing },
  { name: 'Escalation', of: ({ correctness }) => correctness.escalation },
]

export function EvalCharts({ one }: { one: Eval }) {
  const shares = SHARES.flatMap(({ name, of }) => {
    const values = valuesOf(one, (variant) => {
      const share = of(variant)
      return share === null ? null : Math.round(share * 1_000) / 10
    })
    return Object.values(values).every((value) => value === null) ? [] : [{ name, ...values }]
  })
  return (
    <div className={classes.charts}>
      <Bars title="Right outcomes" data={shares} one={one} unit=" %" highest={100} />
      <Bars
        title="Time per case"
        data={[{ name: 'Time', ...valuesOf(one, ({ latency }) => latency) }]}
        one={one}
        write={duration}
      />
      <Bars
        title="Tokens per case"
        data={[{ name: 'Tokens', ...valuesOf(one, (variant) => variant.tokens) }]}
        one={one}
        write={(value) => tokens(Math.round(value))}
      />
    </div>
  )
}

const valuesOf = (one: Eval, of: (variant: Variant) => number | null): Record<string, number | null> =>
  Object.fromEntries(
    one.compared.map((name) => {
      const variant = one.variants[name]
      return [name, variant ? of(variant) : null]
    }),
  )

interface BarsProps {
  title: string
  data: Record<string, string | number | null>[]
  one: Eval
  unit?: string
  highest?: number
  write?: (value: number) => string
}

function Bars({ title, data, one, unit, highest, write }: BarsProps) {
  return (
    <figure className={classes.chart}>
      <figcaption>{title}</figcaption>
      <div aria-hidden>
        <BarChart
          h={180}
          data={data}
          dataKey="name"
          series={one.compared.map((name, place) => ({ name, color: COLOURS[place % COLOURS.length] ?? '' }))}
          withLegend
          tickLine="none"
          gridAxis="x"
          maxBarWidth={36}
          barProps={{ isAnimationActive: false }}
          barChartProps={{ accessibilityLayer: false }}
          {...(unit !== undefined && { unit })}
          {...(write && { valueFormatter: write })}
          {...(highest !== undefined && { yAxisProps: { domain: [0, highest] } })}
        />
      </div>
    </figure>
  )
}
