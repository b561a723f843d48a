import { diffArrays } from 'diff'
import type { PromptDiff, PromptVersion } from '../kernel/prompt.ts'
import { formatPromptText } from './prompt-text.ts'

/**
 * The search for the shortest difference takes the square of its length. Measured on two cores with texts of 450,000
 * different lines: up to 0.15 s in all with 300, 0.6 s with 2,000 and 4 s with 4,000.
 */
const LONGEST_SEARCH = 300

/** The lines that differ. Texts that have too little in common are shown as replaced. */
export function diffVersions(from: PromptVersion, to: PromptVersion): PromptDiff {
  const [before, after] = [linesOf(from), linesOf(to)]
  const found = diffArrays(before, after, { maxEditLength: LONGEST_SEARCH })
  const changes = found ?? [
    { value: before, added: false, removed: true },
    { value: after, added: true, removed: false },
  ]
  const count = (which: 'added' | 'removed'): number =>
    changes.reduce((sum, change) => sum + (change[which] ? change.value.length : 0), 0)
  return {
    from: from.version,
    to: to.version,
    added: count('added'),
    removed: count('removed'),
    exact: found !== undefined,
    parts: changes.map(({ value, added, removed }) => ({
      op: added ? 'added' : removed ? 'removed' : 'same',
      text: value.join('\n'),
    })),
  }
}

/** A deleted prompt has no lines. */
const linesOf = ({ messages }: PromptVersion): string[] =>
  messages ? formatPromptText(messages).trimEnd().split('\n') : []
