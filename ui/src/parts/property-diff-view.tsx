// Before and after, property by property: the changed ones open, the others folded.

import classes from './property-diff.module.css'
import { changedPieces, type PropertyChange, propertyChanges } from './property-diff.ts'

const SIGNS = { added: '+', removed: '−', changed: '~', same: ' ' }

interface Props {
  before: Readonly<Record<string, unknown>> | null
  after: Readonly<Record<string, unknown>> | null
}

export function PropertyDiff({ before, after }: Props) {
  const all = propertyChanges(before, after)
  const changed = all.filter(({ kind }) => kind !== 'same')
  const same = all.filter(({ kind }) => kind === 'same')
  return (
    <div className={classes.diff}>
      {changed.length === 0 && <p className="dim">No property.</p>}
      {changed.length > 0 && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
        <ul aria-label="Changes" tabIndex={0}>
          {changed.map((change) => (
            <Change key={change.name} change={change} />
          ))}
        </ul>
      )}
      {same.length > 0 && (
        <details>
          <summary className="dim">{same.length === 1 ? '1 property stays' : `${same.length} properties stay`}</summary>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard */}
          <ul aria-label="Unchanged" tabIndex={0}>
            {same.map(({ name, was }) => (
              <li key={name}>
                <span />
                <span className={classes.name}>{name}</span>
                <span className={classes.values}>{was}</span>
              </li>
            ))}
          </ul>
        </details>
      )}
    </div>
  )
}

function Change({ change: { name, kind, was, willBe } }: { change: PropertyChange }) {
  return (
    <li data-kind={kind}>
      <span aria-hidden>{SIGNS[kind]}</span>
      <span className={classes.name}>
        {name}
        <span className="visually-hidden"> {kind}:</span>
      </span>
      <div className={classes.values}>
        <Values was={was} willBe={willBe} />
      </div>
    </li>
  )
}

function Values({ was, willBe }: Pick<PropertyChange, 'was' | 'willBe'>) {
  const pieces = was !== null && willBe !== null ? changedPieces(was, willBe) : null
  if (pieces === null) {
    return (
      <>
        {was !== null && <del>{was}</del>}
        {was !== null && willBe !== null && ' '}
        {willBe !== null && <ins>{willBe}</ins>}
      </>
    )
  }
  return pieces.map(({ kind, text }, place) => {
    const Tag = kind === 'added' ? 'ins' : kind === 'removed' ? 'del' : 'span'
    // biome-ignore lint/suspicious/noArrayIndexKey: the pieces of two texts have no other name than their place
    return <Tag key={place}>{text}</Tag>
  })
}
