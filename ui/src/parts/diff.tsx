// Two texts compared line by line: side by side where there is room, else one below the other.
import { Button, Text } from '@mantine/core'
import { useMediaQuery } from '@mantine/hooks'
import { Fragment, type ReactNode, useMemo, useState } from 'react'
import classes from './diff.module.css'
import { countOf, type DiffPart, type DiffRow, diffTexts, fold, type Piece, rowsOf, wordsOf } from './diff-lines.ts'

/** At first this many rows are shown, and as many more with each press of "More". */
const ROWS = 1_000

interface Look {
  /** How the two texts are called. */
  names: readonly [string, string]
  /** True: equal lines far from a difference are folded. */
  isFolded?: boolean
  isSideBySide?: boolean
}

export function TextDiff({ before, after, ...look }: Look & { before: string; after: string }) {
  const parts = useMemo(() => diffTexts(before, after), [before, after])
  return <Diff parts={parts} {...look} />
}

export function Diff({ parts, names, isFolded = false, isSideBySide = true }: Look & { parts: readonly DiffPart[] }) {
  const isNarrow = useMediaQuery('(max-width: 720px)') ?? false
  const isSplit = isSideBySide && !isNarrow
  const rows = useMemo(() => rowsOf(parts), [parts])
  const [most, setMost] = useState(ROWS)
  const [opened, setOpened] = useState<ReadonlySet<number>>(new Set())
  const stretches = useMemo(() => (isFolded ? fold(rows.slice(0, most)) : null), [rows, most, isFolded])
  const { added, removed } = countOf(parts)
  if (added + removed === 0) return <Text className="dim">Both texts are the same.</Text>
  const show = (shown: readonly DiffRow[]): ReactNode =>
    shown.map((row) => {
      const key = `${row.left?.number ?? ''}-${row.right?.number ?? ''}`
      return isSplit ? <SplitRow key={key} row={row} /> : <PlainRow key={key} row={row} />
    })
  return (
    <div className={classes.frame}>
      <table className={classes.table}>
        <caption className="visually-hidden">
          {names[0]} compared with {names[1]}: {added} lines added, {removed} removed
        </caption>
        <Head names={names} isSplit={isSplit} count={`+${added} −${removed}`} />
        <tbody>
          {stretches === null && show(rows.slice(0, most))}
          {stretches?.map((stretch, place) =>
            stretch.type === 'rows' || opened.has(place) ? (
              // biome-ignore lint/suspicious/noArrayIndexKey: the stretches of two texts never change their order
              <Fragment key={place}>{show(stretch.rows)}</Fragment>
            ) : (
              // biome-ignore lint/suspicious/noArrayIndexKey: the stretches of two texts never change their order
              <tr key={place} className={classes.fold}>
                <td colSpan={4}>
                  <button type="button" onClick={() => setOpened(new Set([...opened, place]))}>
                    Show {stretch.rows.length} equal lines
                  </button>
                </td>
              </tr>
            ),
          )}
        </tbody>
      </table>
      {rows.length > most && (
        <Button size="compact-sm" variant="subtle" fullWidth onClick={() => setMost(most + ROWS)}>
          More
        </Button>
      )}
    </div>
  )
}

function Head({ names, isSplit, count }: { names: readonly [string, string]; isSplit: boolean; count: string }) {
  return isSplit ? (
    <>
      <colgroup>
        <col style={{ width: 40 }} />
        <col />
        <col style={{ width: 40 }} />
        <col />
      </colgroup>
      <thead>
        <tr>
          <th colSpan={2}>{names[0]}</th>
          <th colSpan={2}>
            {names[1]} <span className="number">{count}</span>
          </th>
        </tr>
      </thead>
    </>
  ) : (
    <>
      <colgroup>
        <col style={{ width: 40 }} />
        <col style={{ width: 40 }} />
        <col style={{ width: 18 }} />
        <col />
      </colgroup>
      <thead>
        <tr>
          <th colSpan={4}>
            {names[0]} → {names[1]} <span className="number">{count}</span>
          </th>
        </tr>
      </thead>
    </>
  )
}

const piecesOf = ({ left, right, isSame }: DiffRow) =>
  isSame || !left || !right
    ? { left: plain(left?.text ?? ''), right: plain(right?.text ?? '') }
    : wordsOf(left.text, right.text)

const plain = (text: string): Piece[] => [{ text, isChanged: false }]

function SplitRow({ row }: { row: DiffRow }) {
  const pieces = piecesOf(row)
  const tone = (isThere: boolean, name: string | undefined): string =>
    (isThere ? (row.isSame ? '' : name) : classes.none) ?? ''
  const removed = tone(row.left !== null, classes.removed)
  const added = tone(row.right !== null, classes.added)
  return (
    <tr>
      <td className={`${classes.number} ${removed}`}>{row.left?.number}</td>
      <td className={`${classes.text} ${removed}`}>
        {row.left && !row.isSame && <span className="visually-hidden">removed: </span>}
        <Pieces of={pieces.left} />
      </td>
      <td className={`${classes.number} ${added}`}>{row.right?.number}</td>
      <td className={`${classes.text} ${added}`}>
        {row.right && !row.isSame && <span className="visually-hidden">added: </span>}
        <Pieces of={pieces.right} />
      </td>
    </tr>
  )
}

function PlainRow({ row }: { row: DiffRow }) {
  const { left, right, isSame } = row
  const pieces = piecesOf(row)
  if (isSame) {
    return <PlainLine left={left?.number} right={right?.number} sign="" pieces={pieces.right} />
  }
  return (
    <>
      {left && <PlainLine left={left.number} sign="−" pieces={pieces.left} />}
      {right && <PlainLine right={right.number} sign="+" pieces={pieces.right} />}
    </>
  )
}

function PlainLine(props: {
  left?: number | undefined
  right?: number | undefined
  sign: '' | '+' | '−'
  pieces: Piece[]
}) {
  const tone = { '': '', '+': classes.added, '−': classes.removed }[props.sign]
  return (
    <tr className={tone}>
      <td className={classes.number}>{props.left}</td>
      <td className={classes.number}>{props.right}</td>
      <td className={classes.sign}>{props.sign}</td>
      <td className={classes.text}>
        <Pieces of={props.pieces} />
      </td>
    </tr>
  )
}

function Pieces({ of }: { of: readonly Piece[] }) {
  return of.map(({ text, isChanged }, place) =>
    isChanged ? (
      // biome-ignore lint/suspicious/noArrayIndexKey: the words of a line never change their order
      <mark key={place}>{text}</mark>
    ) : (
      // biome-ignore lint/suspicious/noArrayIndexKey: the words of a line never change their order
      <Fragment key={place}>{text}</Fragment>
    ),
  )
}
