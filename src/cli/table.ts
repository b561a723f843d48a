// Lists. A terminal gets columns that fit its window, with a heading; a pipe gets whole values between tabs and no
// heading, one line per row, for cut, awk and grep.
import { type Screen, type Style, type StyledText, styled } from './screen.ts'
import { cutToWidth, padToWidth, textWidth } from './text-width.ts'
import { visibleLine } from './visible-text.ts'

export interface TableCell {
  text: string
  /** The value for pipes, if it is another one: a whole id, an instant. */
  whole?: string
  style?: Style | undefined
}

export interface TableColumn<Row> {
  title: string
  cell: (row: Row) => TableCell | string
  side?: 'left' | 'right'
  /** May be cut to this width if the window is narrow. */
  least?: number
  /** Columns are left out of a narrow window in the order of these numbers. */
  leaveOut?: number
}

const GAP = 2
/** No window shows more of a value. */
const LONGEST = 1_000

export function printTable<Row>(screen: Screen, columns: readonly TableColumn<Row>[], rows: readonly Row[]): void {
  const cells = rows.map((row) => columns.map((column) => readCell(column.cell(row))))
  if (!screen.isTerminal) {
    for (const row of cells) screen.print(row.map(({ text, whole }) => whole ?? text).join('\t'))
    return
  }
  const widths = fitWidths(
    columns.map((column, place) => ({
      ...column,
      width: Math.max(textWidth(column.title), ...cells.map((row) => textWidth(row[place]?.text ?? ''))),
    })),
    screen.columns(),
  )
  const line = (row: readonly TableCell[]): StyledText[] => {
    const shown = columns.flatMap(({ side = 'left' }, place) => {
      const width = widths[place] ?? 0
      const cell = row[place]
      return width === 0 || !cell ? [] : [{ cell, width, side }]
    })
    return shown.flatMap(({ cell, width, side }, place) => {
      const text = cutToWidth(cell.text, width)
      const isLast = place === shown.length - 1
      const padded = isLast && side === 'left' ? text : padToWidth(text, width, side === 'left' ? 'right' : 'left')
      return [cell.style === undefined ? padded : styled(cell.style, padded), isLast ? '' : ' '.repeat(GAP)]
    })
  }
  screen.print(...line(columns.map(({ title }) => ({ text: title, style: 'dim' }))))
  for (const row of cells) screen.print(...line(row))
}

/** A cell is one line, and has no tab that a pipe would take for the next column. */
function readCell(cell: TableCell | string): TableCell {
  const { text, whole, style } = typeof cell === 'string' ? { text: cell } : cell
  return {
    text: visibleLine(text.slice(0, LONGEST)),
    ...(whole === undefined ? {} : { whole: visibleLine(whole) }),
    style,
  }
}

interface Fitting {
  width: number
  least?: number
  leaveOut?: number
}

/** The widths with which the columns fit the window; 0 leaves a column out. */
export function fitWidths(columns: readonly Fitting[], room: number): number[] {
  const widths = columns.map(({ width }) => width)
  const excess = (): number => {
    const shown = widths.filter((width) => width > 0)
    return shown.reduce((sum, width) => sum + width, 0) + GAP * Math.max(0, shown.length - 1) - room
  }
  const leastOf = ({ width, least }: Fitting): number => Math.min(width, least ?? width)
  const least = (): number => {
    const shown = columns.filter((_, place) => (widths[place] ?? 0) > 0)
    return shown.reduce((sum, column) => sum + leastOf(column), 0) + GAP * Math.max(0, shown.length - 1)
  }
  const order = columns
    .map(({ leaveOut }, place) => ({ leaveOut, place }))
    .filter(({ leaveOut }) => leaveOut !== undefined)
    .sort((one, other) => (one.leaveOut ?? 0) - (other.leaveOut ?? 0))
  for (const { place } of order) if (least() > room) widths[place] = 0
  // The widest column that may be cut gives first, so that short values stay whole.
  while (excess() > 0) {
    const place = widest(widths, (at) => leastOf(columns[at] ?? { width: 0 }))
    if (place === -1) break
    widths[place] = (widths[place] ?? 0) - 1
  }
  return widths
}

function widest(widths: readonly number[], leastAt: (place: number) => number): number {
  let best = -1
  widths.forEach((width, place) => {
    if (width > leastAt(place) && width > (widths[best] ?? 0)) best = place
  })
  return best
}
