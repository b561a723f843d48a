// The choice of a pattern for a workload: one table of cues in a description, the pattern each speaks for, and its
// weight. The pattern with the most weight is taken; among equals the one that stands first here.
import type { Pattern } from '../kernel/flow.ts'
import type { WorkloadFacts } from './workload-facts.ts'

export interface Cue {
  pattern: Pattern['type']
  weight: number
  speaks: RegExp | ((facts: WorkloadFacts) => boolean)
  /** Ends the sentence "It suits because …". */
  because: string
}

const PUT_TOGETHER =
  /\b(summari[sz]|aggregat|combin|consolidat|merg|tally|count\b|total|averag|statistics|one (report|answer|list|summary)|overall|(weekly|final|single|common) (report|summary))/i
const MANY = 20

export const cues: readonly Cue[] = [
  { pattern: 'map_reduce', weight: 10, speaks: /\bmap[\s/_-]*reduce\b/i, because: 'it is named' },
  {
    pattern: 'map_reduce',
    weight: 5,
    speaks: ({ text }) =>
      /\b(independent(ly)?|each|every|all|across|per|by itself)\b/i.test(text) && PUT_TOGETHER.test(text),
    because: 'every item is worked on by itself and the results are put together',
  },
  {
    pattern: 'map_reduce',
    weight: 4,
    speaks: ({ text, items }) => (items ?? 0) >= MANY && PUT_TOGETHER.test(text),
    because: 'there are many items and one result',
  },
  {
    pattern: 'map_reduce',
    weight: 5,
    speaks: /\b(group(ed)? by|word (count|frequenc)|histogram|inverted index|how many .{1,200} (mention|contain|per))/i,
    because: 'results are gathered by key',
  },

  { pattern: 'pipeline', weight: 10, speaks: /\b(pipelines?|etl)\b/i, because: 'it is named' },
  {
    pattern: 'pipeline',
    weight: 6,
    speaks:
      /\b(stream(s|ing|ed)?|real[\s-]?time|continuous(ly)?|as (they|it) (arrive|come)s?( in)?|incoming|back-?pressure|feeds?|monitor(s|ing)?)\b/i,
    because: 'items arrive over time and pass through stages',
  },
  {
    pattern: 'pipeline',
    weight: 6,
    speaks:
      /\bextract\w*\b.{1,200}\btransform\w*\b.{1,200}\bload|\bparse\b.{1,200}\b(transform|validate|clean|enrich)\b/is,
    because: 'each item passes the same stages one after the other',
  },
  {
    pattern: 'pipeline',
    weight: 5,
    speaks: ({ items, steps, stepCount, text }) =>
      (items ?? 0) >= MANY && Math.max(steps.length, stepCount ?? 0) >= 3 && !PUT_TOGETHER.test(text),
    because: 'many items go through several steps, and a later step need not wait for all of them',
  },

  {
    pattern: 'fork_join',
    weight: 10,
    speaks: /\b(fork[\s/_-]*join|divide[\s-]and[\s-]conquer)\b/i,
    because: 'it is named',
  },
  {
    pattern: 'fork_join',
    weight: 6,
    speaks: /\b(recursive(ly)?|sub-?problems?|(merge|quick)[\s-]?sort|too (large|long|big))\b/i,
    because: 'the problem is split until its pieces are small enough',
  },
  {
    pattern: 'fork_join',
    weight: 6,
    speaks:
      /\b(split|divide|break|cut|chop)\b.{1,200}\b(pieces|parts|chunks|sections|chapters|halves|smaller)\b|\b(splitting|dividing)\b/is,
    because: 'one large thing is split and the pieces are joined',
  },
  {
    pattern: 'fork_join',
    weight: 5,
    speaks: /\b(research|gather sources|literature)\b/i,
    because: 'sources are gathered, each is analyzed, and what they say is joined',
  },

  {
    pattern: 'hierarchical',
    weight: 10,
    speaks: /\b(queens?|hierarch\w+)\b/i,
    because: 'a queen is named',
  },
  {
    pattern: 'hierarchical',
    weight: 6,
    speaks:
      /\b(delegat\w*|coordinat\w*|supervis\w*|overs(ee|ight)\w*|orchestrat\w*|decompos\w*|team of|led by|lead agent|allocat\w*)\b/i,
    because: 'someone is to plan, hand out the work and judge it',
  },
  {
    pattern: 'hierarchical',
    weight: 5,
    speaks:
      /\b(security (issues|audit|review)|codebase|complex|open-ended|strategy|make a plan|plan (and|the)|feature)\b/i,
    because: 'what has to be done is only known after looking at the goal',
  },

  {
    pattern: 'loop',
    weight: 6,
    speaks: /\b(until|while (it|there)|loop|repeat(ed|edly)?|iterat\w*|over and over)\b/i,
    because: 'it is repeated until something holds',
  },
  {
    pattern: 'loop',
    weight: 5,
    speaks:
      /\b(refin\w*|polish\w*|keep (improving|trying|revising|editing)|improve step by step|self-?critique|good enough)\b/i,
    because: 'a result is made better round by round',
  },
  { pattern: 'loop', weight: 4, speaks: ({ rounds }) => rounds !== null, because: 'it names a number of rounds' },

  {
    pattern: 'adaptive',
    weight: 10,
    speaks: /\b(adapt(ive|s)?( topology)?|topolog(y|ies)|mesh|hub[\s-]and[\s-]spoke)\b/i,
    because: 'it is named',
  },
  {
    pattern: 'adaptive',
    weight: 6,
    speaks:
      /\b(uneven|unpredictabl[ey]|burst[sy]?|bursty|fluctuat\w*|spik(e|es|y)|overload\w*|re-?balanc\w*|load[\s-]balanc\w*|(changing|varying|variable) (load|sizes?|effort|durations?)|some (take|are) (much|far) )/i,
    because: 'the load is uneven, so the workers are arranged anew when some have too much',
  },

  {
    pattern: 'parallel',
    weight: 4,
    speaks: /\b(in parallel|parallel|concurrent(ly)?|simultaneous(ly)?|at once|at the same time|side by side|swarm)\b/i,
    because: 'it is to be done at the same time',
  },
  { pattern: 'parallel', weight: 3, speaks: /\bindependent(ly)?\b/i, because: 'nothing depends on anything else' },
  {
    pattern: 'parallel',
    weight: 3,
    speaks:
      /\b(compare|different (models|prompts|angles|perspectives|views|experts)|second opinion|votes?|ask \w+ (experts|reviewers))\b/i,
    because: 'several look at the same thing',
  },
  {
    pattern: 'parallel',
    weight: 2,
    speaks: ({ items, steps }) => (items ?? 0) >= 2 && steps.length === 1,
    because: 'there are several things and no order among them',
  },

  {
    pattern: 'sequential',
    weight: 5,
    speaks: /\b(in order|step by step|one after (the other|another)|sequential(ly)?|depends? on|in sequence)\b/i,
    because: 'there is an order to be kept',
  },
  {
    pattern: 'sequential',
    weight: 3,
    speaks: ({ steps, stepCount }) => steps.length > 1 || (stepCount ?? 0) > 1,
    because: 'a step needs what the step before gave',
  },
]

export interface Verdict {
  pattern: Pattern['type']
  /** The reasons, the weightiest first; empty where no cue was found. */
  because: string[]
}

/** When no cue is found, the pattern is sequential: one step after the other is always right, if not always fast. */
export function choosePattern(facts: WorkloadFacts): Verdict {
  const heard = cues.filter(({ speaks }) => (speaks instanceof RegExp ? speaks.test(facts.text) : speaks(facts)))
  const weights = new Map<Pattern['type'], number>()
  for (const { pattern, weight } of heard) weights.set(pattern, (weights.get(pattern) ?? 0) + weight)
  const [best] = [...weights].toSorted(([, a], [, b]) => b - a)
  if (!best) return { pattern: 'sequential', because: [] }
  const [pattern] = best
  const own = heard.filter((cue) => cue.pattern === pattern).toSorted((a, b) => b.weight - a.weight)
  return { pattern, because: own.map((cue) => cue.because) }
}
