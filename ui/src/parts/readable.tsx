// A value that somebody wants to read: text as Markdown, all else as names with their values. The JSON is one click away.
import { useState } from 'react'
import { lazily } from './lazily.tsx'
import { Panel } from './panel.tsx'
import { showMarks } from './property-diff.ts'
import { readValue, wordsOf } from './read-value.ts'
import classes from './readable.module.css'
import { Value } from './value.tsx'

const ModelText = lazily(() => import('./markdown.tsx').then((module) => module.ModelText))

/** A longer text is cut, and the JSON is cut later. */
const LONGEST_TEXT = 20_000
const MOST_ENTRIES = 50
/** Deeper values are shown as JSON: each level takes room from the left. */
const DEEPEST = 3

export function Readable({ of: value }: { of: unknown }) {
  const [isRaw, setIsRaw] = useState(false)
  const { type } = readValue(value)
  const hasJson = type === 'pairs' || type === 'list'
  return (
    <div className={classes.readable}>
      {isRaw ? <Value of={value} /> : <Part of={value} depth={0} />}
      {hasJson && (
        <button type="button" className={classes.switch} aria-pressed={isRaw} onClick={() => setIsRaw(!isRaw)}>
          {isRaw ? 'Show as text' : 'Show the JSON'}
        </button>
      )}
    </div>
  )
}

function Part({ of: value, depth }: { of: unknown; depth: number }) {
  const read = readValue(value)
  if (depth >= DEEPEST && (read.type === 'pairs' || read.type === 'list')) return <Value of={value} />
  switch (read.type) {
    case 'text':
      return (
        <Panel name="The text">
          <ModelText>{showMarks(cut(read.text))}</ModelText>
        </Panel>
      )
    case 'plain':
      return <span className="number">{read.text}</span>
    case 'pairs':
      return (
        <dl className={classes.pairs}>
          {read.pairs.slice(0, MOST_ENTRIES).map(([name, each]) => (
            <div key={name}>
              <dt className="dim">{showMarks(wordsOf(name))}</dt>
              <dd>
                <Part of={each} depth={depth + 1} />
              </dd>
            </div>
          ))}
          <Rest of={read.pairs.length} />
        </dl>
      )
    case 'list':
      return (
        <ol className={classes.items}>
          {read.items.slice(0, MOST_ENTRIES).map((each, place) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: an entry of a value has no other name than its place
            <li key={place}>
              <Part of={each} depth={depth + 1} />
            </li>
          ))}
          <Rest of={read.items.length} isItem />
        </ol>
      )
  }
}

function Rest({ of: count, isItem = false }: { of: number; isItem?: boolean }) {
  if (count <= MOST_ENTRIES) return null
  const text = `and ${count - MOST_ENTRIES} more: the JSON has them`
  return isItem ? <li className="dim">{text}</li> : <div className="dim">{text}</div>
}

const cut = (text: string): string =>
  text.length > LONGEST_TEXT
    ? `${text.slice(0, LONGEST_TEXT)}\n\n… ${text.length - LONGEST_TEXT} more characters`
    : text
