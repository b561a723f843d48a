// Places the problems that the API found at the nodes that they name.
import type { Problem } from '../../../../src/kernel/explain-issue.ts'
import { asSentence } from '../../api/issues.ts'
import { nearestPath } from './tree.ts'

export interface PlacedProblem extends Problem {
  /** The path of the node. */
  node: string
  /** The field of the node, or an empty text if the whole node is meant. */
  field: string
}

export const placeProblems = (root: unknown, problems: readonly Problem[]): PlacedProblem[] =>
  problems.map((problem) => {
    const node = nearestPath(root, problem.path)
    const field = /^[.]?([^.[\]]*)/.exec(problem.path.slice(node.length))?.[1] ?? ''
    return { ...problem, node, field }
  })

/** The problems of a field of a node, as one text; null if there are none. */
export function problemsAt(problems: readonly PlacedProblem[], node: string, field: string): string | null {
  const texts = problems.filter((each) => each.node === node && each.field === field).map(sentence)
  return texts.length === 0 ? null : texts.join(' ')
}

export const sentence = ({ message }: Problem): string => asSentence(message)
