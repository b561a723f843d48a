import '@mantine/charts/styles.css'
import { BarChart, LineChart } from '@mantine/charts'
import type { OfType } from '../../../../src/kernel/genui.ts'
import classes from './genui.module.css'

const COLORS = [
  'indigo.5',
  'teal.6',
  'yellow.6',
  'red.6',
  'grape.5',
  'cyan.6',
  'lime.6',
  'orange.6',
  'pink.5',
  'gray.6',
]

/** The chart for those who look, and its values as a table for those who listen. */
export function Chart({ of: { kind, unit, categories, series } }: { of: OfType<'chart'> }) {
  const data = categories.map((category, place) => ({
    category,
    ...Object.fromEntries(series.map(({ values }, number) => [`s${number}`, values[place] ?? null])),
  }))
  const drawn = {
    h: 220,
    data,
    dataKey: 'category',
    withLegend: series.length > 1,
    series: series.map(({ label }, number) => ({ name: `s${number}`, label, color: COLORS[number] ?? 'gray.6' })),
    ...(unit !== undefined && { unit: ` ${unit}` }),
  }
  return (
    <>
      <div aria-hidden className={classes.drawing}>
        {kind === 'bar' ? <BarChart {...drawn} /> : <LineChart {...drawn} curveType="linear" />}
      </div>
      <table className="visually-hidden">
        <thead>
          <tr>
            <th>Category</th>
            {series.map(({ label }, number) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: series never change their order
              <th key={number}>{label}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {categories.map((category, place) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: categories never change their order
            <tr key={place}>
              <td>{category}</td>
              {series.map(({ values }, number) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: series never change their order
                <td key={number}>{values[place] === null ? '–' : `${values[place]} ${unit ?? ''}`}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </>
  )
}
