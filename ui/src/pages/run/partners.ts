// The runs that a run may be compared with, the likeliest first.
import type { Run } from '../../../../src/kernel/run.ts'

export interface Partner {
  run: Run
  /** How the two are related; null if they are not. */
  relation: string | null
}

export function partnersOf(run: Run, origin: Run | null, recent: readonly Run[]): Partner[] {
  const others = recent.filter(({ id, agent_id }) => id !== run.id && id !== origin?.id && agent_id === run.agent_id)
  const partners = others.map((other) => ({ run: other, relation: relationOf(run, other) }))
  return [
    ...(origin ? [{ run: origin, relation: relationOf(run, origin) }] : []),
    ...partners.filter(({ relation }) => relation !== null),
    ...partners.filter(({ relation }) => relation === null),
  ]
}

function relationOf(run: Run, other: Run): string | null {
  if (run.forked_from === other.id) return 'The run that this one was forked from'
  if (run.resumed_from === other.id) return 'The run that this one continues'
  if (other.forked_from === run.id) return 'A fork of this run'
  if (other.resumed_from === run.id) return 'The run that continues this one'
  return null
}
