// Words about the calls of a run that took effect.
import type { Run, RunEffect, RunEffects } from '../../../../src/kernel/run.ts'
import type { Step } from '../../api/shapes.ts'

/** "Continues after step 4; 2 calls took effect and are not repeated." */
export function resumeSentence(
  { step_count: steps }: Pick<Run, 'step_count'>,
  { items, truncated }: Pick<RunEffects, 'items' | 'truncated'>,
): string {
  const finished = items.filter(({ outcome }) => outcome === 'finished').length
  const unknown = items.filter((each) => isAskedAbout(each)).length
  const took = truncated ? `more than ${calls(finished)}` : calls(finished)
  const from = steps === 0 ? 'Begins with its first step' : `Continues after step ${steps}`
  return [
    finished === 0 ? `${from}.` : `${from}; ${took} took effect and ${finished === 1 ? 'is' : 'are'} not repeated.`,
    ...(unknown === 0
      ? []
      : [`The outcome of ${calls(unknown)} is unknown. You will be asked about ${unknown === 1 ? 'it' : 'them'}.`]),
  ].join(' ')
}

/** A keyed call is made once more under its key, and a tool of Muster itself is carried out once: nobody is asked. */
const isAskedAbout = ({ outcome, effect }: RunEffect): boolean => outcome === 'unknown' && effect === 'unsafe'

/** Stands above the calls that a new start may make once more. */
export function repeatSentence(effects: readonly RunEffect[]): string {
  if (effects.length === 1) return 'This call may be made a second time:'
  return `These ${calls(effects.length)} may be made a second time:`
}

/**
 * The calls after a step: a fork after that step does not know them. A call of a sub-run belongs to the step during which
 * it was made.
 */
export function effectsAfter(effects: readonly RunEffect[], steps: readonly Step[], after: number): RunEffect[] {
  const models = steps.filter((step) => step.kind === 'model')
  const stepOf = (effect: RunEffect): number => {
    const isOwn = steps.some((row) => row.kind === 'tool' && row.call_id === effect.call_id && row.step === effect.step)
    return isOwn
      ? effect.step
      : Math.max(0, ...models.filter((row) => row.started_at <= effect.at).map((row) => row.step))
  }
  return effects.filter((effect) => stepOf(effect) > after)
}

const calls = (count: number): string => (count === 1 ? '1 call' : `${new Intl.NumberFormat('en').format(count)} calls`)
