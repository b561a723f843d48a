// The keys of the children of a queen's team. A key holds words of a model, the id of a subtask, so it is built here and
// never taken apart beyond its first word and its last.
import type { Subtask } from '../../../kernel/decision.ts'

/** A run with the brief of a subtask. The rounds count from 1, the places from 0. */
export const runKey = (round: number, { id }: Subtask, place: number): string => `do ${round} ${id} ${place}`

/** The run of a part of a subtask that was split. */
export const partKey = (round: number, { id }: Subtask, place: number): string => `part ${round} ${id} ${place}`

/** The question to the queen about a slow subtask. */
export const adjustKey = (round: number, { id }: Subtask): string => `adjust ${round} ${id}`

/** The attempts of a child: it is tried once more if it fails. */
export const attemptsOf = (key: string): readonly [first: string, second: string] => [key, `${key} again`]

/** True for the runs of workers; the other children are questions to the queen. */
export const isRunOfWorker = (key: string): boolean => /^(do|part) /.test(key)
