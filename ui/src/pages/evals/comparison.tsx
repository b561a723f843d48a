// The variants in figures, each against the first.
import { Table, Text, Title } from '@mantine/core'
import type { Eval, Comparison as Versus } from '../../../../src/kernel/eval.ts'
import { duration, tokens } from '../../parts/figures.ts'
import { WideTable } from '../../parts/wide-table.tsx'
import classes from './evals.module.css'
import { type Meaning, meaningOf, percent, points, signed } from './verdict.ts'

type Figure = keyof Versus['deltas']

const FIGURES: { figure: Figure; name: string; isMoreBetter: boolean }[] = [
  { figure: 'pass_rate', name: 'Pass rate', isMoreBetter: true },
  { figure: 'latency', name: 'Time', isMoreBetter: false },
  { figure: 'tokens', name: 'Tokens', isMoreBetter: false },
]

const CORRECTNESS = [
  { kind: 'status', name: 'Right status' },
  { kind: 'routing', name: 'Right route' },
  { kind: 'escalation', name: 'Right escalation' },
] as const

const TONES: Record<Meaning, string> = {
  better: 'var(--completed)',
  worse: 'var(--failed)',
  chance: 'var(--dim)',
  unknown: 'var(--dim)',
}

const WORDS: Record<Meaning, string> = {
  better: 'better',
  worse: 'worse',
  chance: 'may be chance',
  unknown: 'too few cases to tell',
}

export function Comparison({ one }: { one: Eval }) {
  return (
    <section aria-label="Comparison">
      <Title order={2} mb="xs">
        Comparison
      </Title>
      <WideTable name="Table of variants" minWidth={760}>
        <Table.Thead>
          <Table.Tr>
            {['Variant', ...[...FIGURES, ...CORRECTNESS].map(({ name }) => name)].map((name) => (
              <Table.Th key={name} className="dim" fw={500}>
                {name}
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {one.compared.map((name) => (
            <Row key={name} name={name} variant={one.variants[name]} />
          ))}
        </Table.Tbody>
      </WideTable>
      {one.compared.length > 1 && (
        <Text size="xs" className="dim">
          Time and tokens are means per case. Differences are to {one.compared[0]}, over the cases that have an outcome
          in both, with 95 % confidence intervals.
        </Text>
      )}
    </section>
  )
}

function Row({ name, variant }: { name: string; variant: Eval['variants'][string] | undefined }) {
  if (!variant) return null
  const { versus_first: versus } = variant
  return (
    <Table.Tr>
      <Table.Th scope="row" fw={600} style={{ verticalAlign: 'top' }}>
        {name}
      </Table.Th>
      {FIGURES.map(({ figure, isMoreBetter }) => (
        <Table.Td key={figure} className="number" style={{ verticalAlign: 'top' }}>
          {shown(figure, variant[figure])}
          {versus && <Delta figure={figure} versus={versus} isMoreBetter={isMoreBetter} />}
        </Table.Td>
      ))}
      {CORRECTNESS.map(({ kind }) => (
        <Table.Td key={kind} className="number" style={{ verticalAlign: 'top' }}>
          {percent(variant.correctness[kind])}
        </Table.Td>
      ))}
    </Table.Tr>
  )
}

function Delta(props: { figure: Figure; versus: Versus; isMoreBetter: boolean }) {
  const { figure, versus, isMoreBetter } = props
  const delta = versus.deltas[figure]
  const interval = versus.intervals[figure]
  if (delta === null) return null
  const meaning = meaningOf(delta, interval, isMoreBetter)
  return (
    <span className={classes.delta} style={{ color: TONES[meaning] }}>
      {difference(figure, delta)} · {WORDS[meaning]}
      {interval && (
        <Text size="xs" className="dim" component="span" display="block">
          {interval.map((end) => difference(figure, end)).join(' to ')}
        </Text>
      )}
    </span>
  )
}

function shown(figure: Figure, value: number | null): string {
  if (value === null) return '–'
  if (figure === 'pass_rate') return percent(value)
  return figure === 'latency' ? duration(value) : tokens(Math.round(value))
}

function difference(figure: Figure, value: number): string {
  if (figure === 'pass_rate') return points(value)
  if (figure === 'tokens') return signed(Math.round(value))
  return `${value < 0 ? '−' : '+'}${duration(Math.abs(value))}`
}
