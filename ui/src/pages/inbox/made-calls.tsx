// Calls that were made, or may have been, one below the other: a person decides by them, also on a phone.
import { ArgumentTable, ShownValue } from '../../parts/argument-table.tsx'
import { showMarks } from '../../parts/property-diff.ts'
import { When } from '../../parts/when.tsx'
import classes from './inbox.module.css'

export interface ShownCall {
  tool: string
  args: unknown
  result: unknown
  key: string
  at: string | null
  isFinished: boolean
}

export function MadeCalls({ of: calls, name }: { of: readonly ShownCall[]; name: string }) {
  return (
    <ul className={classes.calls} aria-label={name}>
      {calls.map(({ tool, args, result, key, at, isFinished }, place) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the calls never move, and one key may stand for two
        <li key={place}>
          <p>
            <b className="mono">{showMarks(tool)}</b>{' '}
            <span className="dim">
              <When at={at} />
            </span>
          </p>
          <ArgumentTable args={args} name={`Arguments of ${tool}`} />
          <dl className={classes.outcome}>
            <dt>Result</dt>
            <dd>{isFinished ? <ShownValue of={result ?? null} /> : 'unknown'}</dd>
            <dt>Key</dt>
            <dd className="mono">{showMarks(key)}</dd>
          </dl>
        </li>
      ))}
    </ul>
  )
}
