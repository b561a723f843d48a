// The lines in which two texts differ, as rows of a table that has the old text at the left and the new one at the right.
import { diffArrays, diffWordsWithSpace } from 'diff'

/** As the API gives a difference. */
export interface DiffPart {
  op: 'same' | 'added' | 'removed'
  text: string
}

interface Line {
  number: number
  text: string
}

export interface DiffRow {
  left: Line | null
  right: Line | null
  isSame: boolean
}

/** Rows that differ, or that stand near such rows; or a run of equal rows far from any difference. */
export type Stretch = { type: 'rows'; rows: DiffRow[] } | { type: 'fold'; rows: DiffRow[] }

/** The search takes the square of this length. Texts that have less in common are shown as replaced. */
const LONGEST_SEARCH = 400
const LONGEST_LINE = 2_000
/** A fold hides at least this many lines. */
const SHORTEST_FOLD = 4

export function diffTexts(before: string, after: string): DiffPart[] {
  const [old, young] = [linesOf(before), linesOf(after)]
  const found = diffArrays(old, young, { maxEditLength: LONGEST_SEARCH }) ?? [
    { value: old, added: false, removed: true },
    { value: young, added: true, removed: false },
  ]
  return found.map(({ value, added, removed }) => ({
    op: added ? 'added' : removed ? 'removed' : 'same',
    text: value.join('\n'),
  }))
}

/** An empty text has no lines. */
const linesOf = (text: string): string[] => (text === '' ? [] : text.split('\n'))

/** A removed line stands beside the line that was added in its place. */
export function rowsOf(parts: readonly DiffPart[]): DiffRow[] {
  const rows: DiffRow[] = []
  let [left, right] = [0, 0]
  let removed: Line[] = []
  let added: Line[] = []
  const flush = (): void => {
    for (let place = 0; place < Math.max(removed.length, added.length); place++) {
      rows.push({ left: removed[place] ?? null, right: added[place] ?? null, isSame: false })
    }
    removed = []
    added = []
  }
  for (const { op, text } of parts) {
    if (op === 'same') flush()
    for (const line of text.split('\n')) {
      if (op === 'removed') removed.push({ number: ++left, text: line })
      else if (op === 'added') added.push({ number: ++right, text: line })
      else rows.push({ left: { number: ++left, text: line }, right: { number: ++right, text: line }, isSame: true })
    }
  }
  flush()
  return rows
}

/** Folds the equal rows that are further than `around` from every difference. */
export function fold(rows: readonly DiffRow[], around = 3): Stretch[] {
  const stretches: Stretch[] = []
  const isNear = nearDifferences(rows, around)
  for (const [place, row] of rows.entries()) {
    const type = isNear[place] ? 'rows' : 'fold'
    const last = stretches.at(-1)
    if (last?.type === type) last.rows.push(row)
    else stretches.push({ type, rows: [row] })
  }
  return stretches.map((stretch) =>
    stretch.type === 'fold' && stretch.rows.length < SHORTEST_FOLD ? { ...stretch, type: 'rows' } : stretch,
  )
}

function nearDifferences(rows: readonly DiffRow[], around: number): boolean[] {
  const isNear = rows.map(() => false)
  for (const [place, { isSame }] of rows.entries()) {
    if (isSame) continue
    isNear.fill(true, Math.max(0, place - around), place + around + 1)
  }
  return isNear
}

export interface Piece {
  text: string
  isChanged: boolean
}

/** The words of a line that changed, on both sides. Lines without much in common are whole pieces. */
export function wordsOf(before: string, after: string): { left: Piece[]; right: Piece[] } {
  const whole = { left: [{ text: before, isChanged: false }], right: [{ text: after, isChanged: false }] }
  if (Math.max(before.length, after.length) > LONGEST_LINE) return whole
  const changes = diffWordsWithSpace(before, after)
  const same = changes.reduce((sum, { added, removed, value }) => sum + (added || removed ? 0 : value.trim().length), 0)
  if (same * 2 < Math.min(before.length, after.length)) return whole
  const side = (other: 'added' | 'removed'): Piece[] =>
    changes.flatMap((change) =>
      change[other] ? [] : [{ text: change.value, isChanged: change.added || change.removed }],
    )
  return { left: side('added'), right: side('removed') }
}

export function countOf(parts: readonly DiffPart[]): { added: number; removed: number } {
  const count = (op: DiffPart['op']): number =>
    parts.reduce((sum, part) => sum + (part.op === op ? part.text.split('\n').length : 0), 0)
  return { added: count('added'), removed: count('removed') }
}
