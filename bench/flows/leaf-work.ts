// The same work for every side: a step takes the value of the step before it, and returns a value of some 100 bytes.

export const STEPS = 5

export interface Value {
  step: number
  text: string
}

const TEXT = 'What a step found, at about the length that such values have.'

export const FIRST: Value = { step: 0, text: TEXT }

export const nextValue = ({ step }: Value): Value => ({ step: step + 1, text: TEXT })

/** Works for items numbered from 0. */
export const square = (item: number): number => item * item

export const sumOfSquares = (count: number): number => (count * (count - 1) * (2 * count - 1)) / 6
