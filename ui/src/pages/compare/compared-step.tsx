// A row of the comparison: the same step of both runs, with what differs marked.
import type { ReactNode } from 'react'
import type { ToolStep } from '../../api/shapes.ts'
import { cost, duration, tokens } from '../../parts/figures.ts'
import { alignCalls, type Row, type Turn } from './align.ts'
import classes from './compare.module.css'
import { differencesOf, outcomeOf } from './differences.ts'
import { MarkedText } from './marked-text.tsx'

type Side = 'left' | 'right'
const OTHER: Record<Side, Side> = { left: 'right', right: 'left' }

export function ComparedStep({ row }: { row: Row<Turn> }) {
  const differences = differencesOf(row)
  const { note, tone } = verdictOf(row, differences)
  const numbers = [row.left?.step, row.right?.step].filter((step) => step !== undefined)
  return (
    <li className={classes.row} data-tone={tone}>
      <div className={classes.note}>
        {`Step ${[...new Set(numbers)].join(' and ')}`}
        <span className="dim">{note}</span>
      </div>
      <div className={classes.sides}>
        <TurnSide row={row} side="left" />
        <TurnSide row={row} side="right" />
      </div>
    </li>
  )
}

function verdictOf({ left, right }: Row<Turn>, differences: string[] | null): { note: string; tone: string } {
  if (differences === null) return { note: left ? 'only in the first run' : 'only in the second run', tone: 'alone' }
  if (left?.isInherited || right?.isInherited) return { note: 'shared by both', tone: 'same' }
  if (differences.length === 0) return { note: 'the same', tone: 'same' }
  return { note: `differs in ${differences.join(', ')}`, tone: 'differs' }
}

function TurnSide({ row, side }: { row: Row<Turn>; side: Side }) {
  const turn = row[side]
  if (!turn) return <div className={`${classes.side} dim`}>–</div>
  const { usage, duration: ms, text } = turn.model
  const calls = alignCalls(row.left?.tools ?? [], row.right?.tools ?? []).filter((pair) => pair[side])
  const waiting = turn.model.tool_calls.filter(({ id }) => !turn.tools.some(({ call_id }) => call_id === id))
  return (
    <div className={classes.side}>
      <div className="dim number">
        {duration(ms)} · {tokens(usage.input_tokens + usage.output_tokens)} tokens
        {usage.cost_usd !== null && ` · ${cost(usage.cost_usd)}`}
      </div>
      {text !== '' && (
        <div className={classes.said}>
          <Marked row={row} side={side} of={({ model }) => model.text} />
        </div>
      )}
      {calls.map((pair) => (
        <Call key={pair[side]?.seq} row={pair} side={side} />
      ))}
      {waiting.map(({ id, name }) => (
        <div key={id} className={classes.call}>
          <span className="mono">{name}</span> <span className="dim">has no result yet</span>
        </div>
      ))}
    </div>
  )
}

function Call({ row, side }: { row: Row<ToolStep>; side: Side }) {
  const call = row[side]
  if (!call) return null
  return (
    <div className={classes.call}>
      <span className="mono">{call.name}</span>{' '}
      <span className="dim number">
        {outcomeOf(call)} · {duration(call.duration)}
        {row[OTHER[side]] === null && ' · only here'}
      </span>
      <Part name="Arguments">
        <Marked row={row} side={side} of={({ args }) => written(args)} />
      </Part>
      <Part name="Result">
        <Marked row={row} side={side} of={({ result }) => written(result)} />
      </Part>
    </div>
  )
}

function Part({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div className={classes.part}>
      <span className="dim">{name}</span>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard */}
      <pre tabIndex={0}>{children}</pre>
    </div>
  )
}

const written = (value: unknown): string =>
  typeof value === 'string' ? value : (JSON.stringify(value, null, 1) ?? 'null')

/** The text of one side, compared with the other side's. A text without another side is not marked: all of it is new. */
function Marked<Item>({ row, side, of }: { row: Row<Item>; side: Side; of: (item: Item) => string }) {
  const { left, right } = row
  if (left && right) return <MarkedText left={of(left)} right={of(right)} side={side} />
  const alone = row[side]
  return alone ? <MarkedText left={of(alone)} right={of(alone)} side={side} /> : null
}
