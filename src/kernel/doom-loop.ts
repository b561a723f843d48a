// The same tool called with the same arguments again and again is a loop that spends money and gets nowhere. Counted
// before the call is made, by a canonical text, with the counter kept in the journal so that a resume goes on counting.
import { hash } from 'node:crypto'
import { canonicalJson } from './canonical-json.ts'

export interface DoomLoopCount {
  /** Which call was made last; null at the start and after a poller, which may repeat itself. */
  last: string | null
  count: number
}

export const noCallsYet: DoomLoopCount = { last: null, count: 0 }

export interface CountedCall {
  name: string
  /** Parsed arguments, or the raw text where they could not be parsed. */
  args: unknown
  /** The tool asks for something until it is there; repeating it is its purpose. */
  isPoller: boolean
}

/** run: make the call · refuse: an error result instead, telling the model to try something else · stop: end the run. */
export type DoomLoopVerdict = 'run' | 'refuse' | 'stop'

export interface DoomLoopLimits {
  warn: number
  stop: number
}

/**
 * The calls of one step, in order. Identical ones within a step count once and share their verdict; any other call
 * starts at 1 again; refused, unknown and malformed calls count like any.
 */
export function countCalls(
  before: DoomLoopCount,
  calls: readonly CountedCall[],
  limits: DoomLoopLimits,
): { after: DoomLoopCount; verdicts: DoomLoopVerdict[] } {
  let after = before
  const verdictOf = new Map<string, DoomLoopVerdict>()
  const verdicts = calls.map((call) => {
    const identity = identify(call)
    const known = verdictOf.get(identity)
    if (known) return known
    after = call.isPoller ? noCallsYet : { last: identity, count: identity === after.last ? after.count + 1 : 1 }
    const verdict = judge(after.count, limits)
    verdictOf.set(identity, verdict)
    return verdict
  })
  return { after, verdicts }
}

function judge(count: number, { warn, stop }: DoomLoopLimits): DoomLoopVerdict {
  if (count >= stop) return 'stop'
  return count >= warn ? 'refuse' : 'run'
}

/** A hash, because it is journalled with every step and arguments may be large. */
const identify = ({ name, args }: CountedCall): string => hash('sha256', `${name} ${canonicalJson(args)}`, 'base64url')
