import type { Run } from '../../../src/kernel/run.ts'

/** The reason why a run has no cost. */
export function whyNoCost({ usage, model }: Pick<Run, 'usage' | 'model'>): string {
  if (usage.total_tokens === 0) return 'No cost: no tokens were used.'
  const which = model === null ? 'the model' : `the model ${model.name} of ${model.provider}`
  return `Unknown cost: ${which} has no price. An admin sets prices under Settings → Providers.`
}
