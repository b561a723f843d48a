import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Screen, StyledText } from './screen.ts'
import { fitWidths, printTable, type TableColumn } from './table.ts'
import { textWidth } from './text-width.ts'

interface Row {
  id: string
  name: string
  status: string
  text: string
}

const columns: TableColumn<Row>[] = [
  { title: 'RUN', cell: ({ id }) => ({ text: id.slice(0, 8), whole: id }) },
  { title: 'AGENT', cell: ({ name }) => name, least: 8 },
  { title: 'STATUS', cell: ({ status }) => ({ text: status, style: 'green' }) },
  { title: 'AGE', cell: () => '5 min', side: 'right', leaveOut: 1 },
  { title: 'INPUT', cell: ({ text }) => text, least: 10, leaveOut: 2 },
]
const rows: Row[] = [
  { id: '01a1e73c-2053-78b6', name: 'Writer', status: 'completed', text: 'two lines about rain' },
  { id: '78434b98-a27a-87c1', name: '雨を書く人', status: 'paused', text: `a\tb\nc ${'long '.repeat(100)}` },
  { id: '5bbad8ac-ac0d-89b7', name: 'כותב', status: 'failed', text: '\u001b[2J' },
]

function print(width: number): string[] {
  const lines: string[] = []
  const text = (span: StyledText): string => (typeof span === 'string' ? span : span.text)
  const screen: Screen = {
    isTerminal: Number.isFinite(width),
    columns: () => width,
    print: (...spans) => void lines.push(spans.map(text).join('')),
    write: () => {},
    live: () => {},
  }
  printTable(screen, columns, rows)
  return lines
}

test('a pipe gets whole values between tabs, one line per row, without a heading', () => {
  const lines = print(Number.POSITIVE_INFINITY)
  assert.equal(lines.length, 3)
  assert.deepEqual(lines[0]?.split('\t'), [
    '01a1e73c-2053-78b6',
    'Writer',
    'completed',
    '5 min',
    'two lines about rain',
  ])
  for (const line of lines) assert.equal(line.split('\t').length, 5, line)
  assert.match(lines[2] ?? '', /␛\[2J$/)
})

for (const width of [40, 60, 80, 200]) {
  test(`in a window of ${width} columns no line is wider, and the columns stand below each other`, () => {
    const [heading = '', ...lines] = print(width)
    for (const line of [heading, ...lines]) assert.ok(textWidth(line) <= width, `${textWidth(line)}: ${line}`)
    const place = textWidth(heading.slice(0, heading.indexOf('STATUS')))
    for (const [line, word] of [
      [lines[0], 'completed'],
      [lines[1], 'paused'],
      [lines[2], 'failed'],
    ] as const) {
      assert.equal(textWidth((line ?? '').slice(0, line?.indexOf(word))), place, line)
    }
    assert.equal(heading.includes('INPUT'), width >= 60)
    assert.match(heading, /^RUN {7}AGENT/)
  })
}

const fits: [name: string, columns: Parameters<typeof fitWidths>[0], room: number, widths: number[]][] = [
  ['all columns fit', [{ width: 5 }, { width: 5 }], 12, [5, 5]],
  ['the widest one is cut', [{ width: 5 }, { width: 50, least: 10 }], 30, [5, 23]],
  [
    'two wide ones are cut alike',
    [
      { width: 40, least: 5 },
      { width: 60, least: 5 },
    ],
    32,
    [15, 15],
  ],
  [
    'a column is left out before others are cut below their least',
    [{ width: 10 }, { width: 30, least: 10 }, { width: 5, leaveOut: 1 }],
    24,
    [10, 12, 0],
  ],
  ['nothing can be cut', [{ width: 10 }, { width: 10 }], 12, [10, 10]],
  ['there are no columns', [], 12, []],
]
for (const [name, given, room, widths] of fits) {
  test(`the widths where ${name}`, () => assert.deepEqual(fitWidths(given, room), widths))
}
