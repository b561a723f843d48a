// The same work for every side: a step takes the value of the one before it, and gives a value of some 100 bytes.

export const STEPS = 5

export interface Value {
  step: number
  text: string
}

const TEXT = 'What a step found, at about the length that such values have.'

export const FIRST: Value = { step: 0, text: TEXT }

export const nextValue = ({ step }: Value): Value => ({ step: step + 1, text: TEXT })

/** Of the items 0 and up. */
export const square = (item: number): number => item * item

export const sumOfSquares = (count: number): number => (count * (count - 1) * (2 * count - 1)) / 6
