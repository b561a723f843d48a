// The functions that come with Muster, with their arguments. Functions of an app module are typed by name.

export interface KnownFunction {
  name: string
  description: string
  /** The names of its arguments. None: its one argument may be any value. */
  args: readonly string[]
}

export const knownFunctions: readonly KnownFunction[] = [
  {
    name: 'muster.ask',
    description: '{prompt, input?} → text. Asks the model, showing it the input below the prompt.',
    args: ['prompt', 'input'],
  },
  {
    name: 'muster.ask_each',
    description:
      '{prompt, items, share?: {of, place}} → list of texts. Asks about one item after the other; with a share only about that one of so many equal parts, the first being 0.',
    args: ['prompt', 'items', 'share'],
  },
  {
    name: 'muster.ask_list',
    description: '{prompt, input?, most?: 10} → list of texts. Asks for a list, one entry per line.',
    args: ['prompt', 'input', 'most'],
  },
  {
    name: 'muster.condense',
    description:
      '{prompt, items} → text. Puts many texts together into one, however many there are: texts that do not fit one prompt are condensed in parts, and the results of the parts are condensed again.',
    args: ['prompt', 'items'],
  },
  {
    name: 'muster.chunk',
    description:
      '{of, size} → list. Cuts a list into lists of that many items, or a text into texts of at most that many characters, between lines or words where it can.',
    args: ['of', 'size'],
  },
  {
    name: 'muster.is_larger',
    description:
      '{of, than} → true or false. Whether a list has more items, or a text more characters, than that; null has none.',
    args: ['of', 'than'],
  },
  {
    name: 'muster.identity',
    description: 'Gives back its argument: a place for a step of your own.',
    args: [],
  },
]

export const functionCalled = (name: unknown): KnownFunction | undefined =>
  knownFunctions.find((each) => each.name === name)
