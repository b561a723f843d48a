// The calls that a new start may make once more, each in one line.
import { TriangleAlert } from 'lucide-react'
import type { RunEffects } from '../../../../src/kernel/run.ts'
import { oneLine } from '../../parts/figures.ts'
import { showMarks } from '../../parts/property-diff.ts'
import { When } from '../../parts/when.tsx'
import { repeatSentence } from './effect-words.ts'
import classes from './run-page.module.css'

const MAX_LINE = 300

/** Nothing is shown for no calls. */
export function MayRepeat({ of: { items: effects, truncated } }: { of: Pick<RunEffects, 'items' | 'truncated'> }) {
  if (effects.length === 0) return null
  return (
    <div className={classes.repeats}>
      <p>
        <TriangleAlert size={14} aria-hidden /> <strong>{repeatSentence(effects)}</strong>
      </p>
      <ul className={classes.effects} aria-label="Calls that may be repeated">
        {effects.map((effect) => (
          <li key={`${effect.run_id} ${effect.step} ${effect.call_id}`}>
            <code className="mono">{effect.tool}</code>{' '}
            <span className="mono">{showMarks(oneLine(effect.args, MAX_LINE))}</span>{' '}
            <span className="dim">
              <When at={effect.at} />
              {effect.outcome === 'unknown' && ', outcome unknown'}
            </span>
          </li>
        ))}
      </ul>
      {truncated && <p className={classes.cut}>There are more calls. The list has those that are gravest to repeat.</p>}
    </div>
  )
}
