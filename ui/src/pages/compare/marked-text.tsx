// One side of two texts: the words that the other side does not have are marked.
import { diffWordsWithSpace } from 'diff'
import { useMemo } from 'react'
import classes from './compare.module.css'

interface Props {
  left: string
  right: string
  side: 'left' | 'right'
}

/** A comparison that takes longer shows the texts without marks. */
const MOST_MS = 100
const MOST_SHOWN = 20_000

export function MarkedText({ left, right, side }: Props) {
  const parts = useMemo(() => partsOf(left, right), [left, right])
  return (
    <>
      {parts
        .filter(({ added, removed }) => (side === 'left' ? !added : !removed))
        .map(({ value, added, removed }, place) => {
          // biome-ignore lint/suspicious/noArrayIndexKey: the parts never change their order
          if (!added && !removed) return <span key={place}>{value}</span>
          const Mark = side === 'left' ? 'del' : 'ins'
          return (
            // biome-ignore lint/suspicious/noArrayIndexKey: the parts never change their order
            <Mark key={place} className={classes.mark}>
              {value}
            </Mark>
          )
        })}
    </>
  )
}

function partsOf(left: string, right: string) {
  const texts = [left, right].map((text) =>
    text.length > MOST_SHOWN ? `${text.slice(0, MOST_SHOWN)}\n… ${text.length - MOST_SHOWN} more characters` : text,
  )
  const [one = '', other = ''] = texts
  return (
    diffWordsWithSpace(one, other, { timeout: MOST_MS }) ?? [
      { value: one, added: false, removed: true },
      { value: other, added: true, removed: false },
    ]
  )
}
