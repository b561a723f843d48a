// Functions that every flow may use, without an agent and without an app module: their names begin with `muster.`. Some
// ask the project's default model.
import { z } from 'zod'
import type { AppFunction } from '../../kernel/app.ts'
import { explainIssue, type PlacedProblem, placedProblems, problemsOf } from '../../kernel/explain-issue.ts'
import { sentenceAt } from '../../kernel/sentence-at.ts'
import { sharesOf } from '../machine/shares.ts'
import type { FunctionContext, WhileIdle } from './function-context.ts'

/** One answer of the project's default model, at the flow run's cost. Rejects if no answer can be had. */
export type Ask = (of: AskedFor, prompt: string, signal: AbortSignal) => Promise<string>
interface AskedFor {
  projectId: string
  flowRunId: string
  leafId: string | undefined
  /** Set for a question about one item of a list: once answered, it is not asked again. */
  item?: AskedItem | undefined
  whileIdle?: WhileIdle | undefined
}

/** An item within the leaf: the call of the function that asks about it, and its place in the list of that call. */
export interface AskedItem {
  call: string
  place: number
}

/** The characters that condense shows the model in one prompt, besides the words of the prompt itself. */
export const CONDENSE_CHARACTERS = 24_000

const prompt = z.string().min(1)
/** A text is a list of one; nothing at all is an empty list. */
const list = z
  .union([z.array(z.unknown()), z.string(), z.null()])
  .transform((value) => (Array.isArray(value) ? value : value ? [value] : []))
const sized = z.union([z.string(), z.array(z.unknown())])
const share = z
  .strictObject({ of: z.int().min(1), place: z.int().min(0) })
  .refine(({ of, place }) => place < of, { path: ['place'], error: 'must be below of: the first part is 0' })

const builtIns = {
  'muster.ask': builtIn({
    description: '{prompt, input?} → text. Asks the model, showing it the input below the prompt.',
    input: z.strictObject({ prompt, input: z.unknown().optional() }),
    run: ({ prompt, input }, ask) => ask(promptWith(prompt, input)),
  }),
  'muster.ask_each': builtIn({
    description:
      '{prompt, items, share?: {of, place}} → list of texts. Asks about one item after the other; with a share only about that one of so many equal parts, the first being 0.',
    input: z.strictObject({ prompt, items: list, share: share.optional() }),
    run: async ({ prompt, items, share }, ask) => {
      const answers: string[] = []
      const mine = share ? (sharesOf(items, share.of)[share.place] ?? []) : items
      for (const [place, item] of mine.entries()) answers.push(await ask(promptWith(prompt, item), place))
      return answers
    },
  }),
  'muster.ask_list': builtIn({
    description: '{prompt, input?, most?: 10} → list of texts. Asks for a list, one entry per line.',
    input: z.strictObject({ prompt, input: z.unknown().optional(), most: z.int().min(1).max(1_000).default(10) }),
    run: async ({ prompt, input, most }, ask) => {
      const wanted = `${prompt}\n\nAnswer with at most ${most} lines, one entry per line and nothing else.`
      return entriesOf(await ask(promptWith(wanted, input))).slice(0, most)
    },
  }),
  'muster.condense': builtIn({
    description:
      '{prompt, items} → text. Puts many texts together into one, however many there are: texts that do not fit one prompt are condensed in parts, and the results of the parts are condensed again.',
    input: z.strictObject({ prompt, items: list }),
    run: ({ prompt, items }, ask) => condense(prompt, items.filter(isSomething).map(asText), ask),
  }),
  'muster.chunk': builtIn({
    description:
      '{of, size} → list. Cuts a list into lists of that many items, or a text into texts of at most that many characters, between lines or words where it can.',
    input: z.strictObject({ of: sized, size: z.int().min(1) }),
    run: ({ of, size }) => (typeof of === 'string' ? cutIntoTexts(of, size) : cutIntoLists(of, size)),
  }),
  'muster.is_larger': builtIn({
    description:
      '{of, than} → true or false. Whether a list has more items, or a text more characters, than that; null has none.',
    input: z.strictObject({ of: sized.nullable(), than: z.number() }),
    run: ({ of, than }) => (of?.length ?? 0) > than,
  }),
  'muster.identity': builtIn({
    description: 'Gives back its argument: a place for a step of your own.',
    input: z.unknown(),
    run: (input) => input ?? null,
  }),
}

export const builtInDescriptions: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(builtIns).map(([name, { description }]) => [name, description]),
)

/** The problems of arguments with which a built-in function would fail. About other functions nothing is known. */
export function argumentProblems(name: string, args: unknown): PlacedProblem[] {
  const input = Object.entries(builtIns).find(([each]) => each === name)?.[1].input
  const parsed = input?.safeParse(args, { error: explainIssue })
  return parsed && !parsed.success ? placedProblems(parsed.error.issues) : []
}

export function createBuiltInFunctions({ ask }: { ask: Ask }): ReadonlyMap<string, AppFunction> {
  return new Map(
    Object.entries(builtIns).map(([name, { call }]): [string, AppFunction] => [
      name,
      (input: unknown, context: FunctionContext) =>
        call(input, name, (text, place) => {
          const { project_id, run_id, leafId, scope, signal, whileIdle } = context
          signal.throwIfAborted()
          const item = place === undefined || scope === undefined ? undefined : { call: scope, place }
          return ask({ projectId: project_id, flowRunId: run_id, leafId, item, whileIdle }, text, signal)
        }),
    ]),
  )
}

/** The problems of one call that an error tells. */
const MOST_TOLD = 5

/** With a place, the question is about the item at that place of a list. */
type AskText = (prompt: string, place?: number) => Promise<string>

/** A function whose arguments do not fit throws an error that names each of them and its problem. */
function builtIn<Input extends z.ZodType>(parts: {
  description: string
  input: Input
  run: (input: z.output<Input>, ask: AskText) => unknown
}): { description: string; input: z.ZodType; call: (input: unknown, name: string, ask: AskText) => unknown } {
  return {
    description: parts.description,
    input: parts.input,
    call: (input, name, ask) => {
      const parsed = parts.input.safeParse(input, { error: explainIssue })
      if (!parsed.success) {
        const problems = problemsOf(parsed.error.issues).slice(0, MOST_TOLD)
        const said = problems.map(({ path, message }) => sentenceAt(path || 'its argument', message))
        throw new Error(`${name} cannot work with its arguments: ${said.join(' ')}`)
      }
      return parts.run(parsed.data, ask)
    },
  }
}

const isSomething = (value: unknown): boolean => value !== undefined && value !== null && value !== ''
const asText = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))

function promptWith(prompt: string, input: unknown): string {
  return isSomething(input) ? `${prompt}\n\n<input>\n${asText(input)}\n</input>` : prompt
}

/** The lines of the answer, without the numbers and dots that models put before them. */
function entriesOf(answer: string): string[] {
  return answer
    .split('\n')
    .map((line) => line.replace(/^\s*(?:[-*•]|\d{1,3}[.)])\s+/, '').trim())
    .filter((line) => line !== '')
}

/** Condenses round by round, until one text is left. Throws if a round does not make the texts fewer. */
async function condense(prompt: string, texts: readonly string[], ask: AskText): Promise<string> {
  if (texts.length === 0) throw new Error('muster.condense was given nothing to put together.')
  let batches = batchesOf(texts)
  for (;;) {
    const answers: string[] = []
    for (const batch of batches) answers.push(await ask(promptWith(prompt, batch)))
    const [only] = answers
    if (only !== undefined && answers.length === 1) return only
    const next = batchesOf(answers.filter(isSomething))
    if (next.length === 0) return ''
    if (next.length >= batches.length) throw new Error('muster.condense gave up: the answers are as long as the texts.')
    batches = next
  }
}

/** Groups of texts, each as large as fits one prompt. */
function batchesOf(texts: readonly string[]): string[] {
  const batches: string[] = []
  for (const text of texts.flatMap((each) => cutIntoTexts(each, CONDENSE_CHARACTERS))) {
    const longer = batches.length === 0 ? text : `${batches.at(-1)}\n\n---\n\n${text}`
    if (batches.length > 0 && longer.length <= CONDENSE_CHARACTERS) batches[batches.length - 1] = longer
    else batches.push(text)
  }
  return batches
}

function cutIntoLists(items: readonly unknown[], size: number): unknown[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, place) =>
    items.slice(place * size, (place + 1) * size),
  )
}

function cutIntoTexts(text: string, size: number): string[] {
  const parts: string[] = []
  let from = 0
  while (text.length - from > size) {
    const window = text.slice(from, from + size)
    const at = Math.max(window.lastIndexOf('\n'), window.lastIndexOf(' '))
    // A gap in the first half would make parts that are needlessly small.
    const length = at >= size / 2 ? at + 1 : wholeCharacters(window)
    parts.push(text.slice(from, from + length))
    from += length
  }
  if (from < text.length) parts.push(text.slice(from))
  return parts
}

/** Half of a surrogate pair is no text, and no JSON that could be stored. */
function wholeCharacters(window: string): number {
  const isHalf = /[\uD800-\uDBFF]$/.test(window)
  if (!isHalf) return window.length
  return window.length === 1 ? 2 : window.length - 1
}
