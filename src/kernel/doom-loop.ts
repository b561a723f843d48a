// The same tool called with the same arguments again and again is a loop that spends money and gets nowhere. Calls are
// counted before they are made; the counter is in the journal, so that a resume goes on counting.
import { hash } from 'node:crypto'
import { canonicalJson } from './canonical-json.ts'

export interface DoomLoopCount {
  /** The last call; null at the start and after a poller, which may repeat itself. */
  last: string | null
  count: number
}

export const noCallsYet: DoomLoopCount = { last: null, count: 0 }

export interface CountedCall {
  name: string
  /** Parsed arguments, or the raw text if they could not be parsed. */
  args: unknown
  /** True for a tool that is meant to be called again until something is there. */
  isPoller: boolean
  /** True if making the call changes something. */
  hasEffect: boolean
}

/**
 * run: make the call · surplus: an error result instead, because the step has made this call often enough · refuse: an
 * error result instead, telling the model to try something else · stop: end the run.
 */
export type DoomLoopVerdict = 'run' | 'surplus' | 'refuse' | 'stop'

/** Of identical calls with an effect in one step this many are made. */
const MAX_EFFECTS_IN_STEP = 2

export interface DoomLoopLimits {
  warn: number
  stop: number
}

/** Counts the calls of a step, in order, refused and malformed ones too. Identical calls within a step count once. */
export function countCalls(
  before: DoomLoopCount,
  calls: readonly CountedCall[],
  limits: DoomLoopLimits,
): { after: DoomLoopCount; verdicts: DoomLoopVerdict[] } {
  let after = before
  const seen = new Map<string, { verdict: DoomLoopVerdict; times: number }>()
  const verdicts = calls.map((call): DoomLoopVerdict => {
    const identity = identify(call)
    const known = seen.get(identity)
    if (known) {
      known.times += 1
      const isSurplus = call.hasEffect && known.times > MAX_EFFECTS_IN_STEP
      return isSurplus && known.verdict === 'run' ? 'surplus' : known.verdict
    }
    after = call.isPoller ? noCallsYet : { last: identity, count: identity === after.last ? after.count + 1 : 1 }
    const verdict = judge(after.count, limits)
    seen.set(identity, { verdict, times: 1 })
    return verdict
  })
  return { after, verdicts }
}

function judge(count: number, { warn, stop }: DoomLoopLimits): DoomLoopVerdict {
  if (count >= stop) return 'stop'
  return count >= warn ? 'refuse' : 'run'
}

/** The identity is a hash, because it is journalled with every step and arguments may be large. */
const identify = ({ name, args }: CountedCall): string => hash('sha256', `${name} ${canonicalJson(args)}`, 'base64url')
