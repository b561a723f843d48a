// Counts the characters that a piece of code processes. A count, unlike a time, is the same on every machine: quadratic
// code shows as a number that grows with the square of the input.

const METHODS = ['slice', 'matchAll', 'match', 'replace', 'replaceAll', 'normalize', 'split', 'trim'] as const

/** The characters that methods of texts and lists took or returned while `work` ran. */
export function countCharacters(work: () => unknown): number {
  let characters = 0
  const undo: (() => void)[] = []
  const watch = (owner: object, name: string, cost: (self: { length: number }, result: unknown) => number): void => {
    const own = Object.getOwnPropertyDescriptor(owner, name)
    if (!own) throw new Error(`There is no method ${name}.`)
    const original = own.value as (...args: unknown[]) => unknown // every one of these is a function
    const value = function (this: { length: number }, ...args: unknown[]): unknown {
      const result = Reflect.apply(original, this, args)
      characters += cost(this, result)
      return result
    }
    Object.defineProperty(owner, name, { ...own, value })
    undo.push(() => Object.defineProperty(owner, name, own))
  }
  const lengthOf = (value: unknown): number => (typeof value === 'string' || Array.isArray(value) ? value.length : 0)
  for (const name of METHODS) {
    watch(String.prototype, name, (self, result) => (name === 'slice' ? lengthOf(result) : self.length))
  }
  watch(Array.prototype, 'slice', (_, result) => lengthOf(result))
  try {
    work()
  } finally {
    for (const back of undo) back()
  }
  return characters
}
