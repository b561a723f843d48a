// The things that a text lists as to be done: the lines of a list, sentences in order ("first … then …"), or three and
// more instructions in one sentence ("research X, write Y and review Z"). The work is linear in the text.

export interface OfflineStep {
  text: string
  /** True if the text puts the step behind the one before it. */
  isAfterPrevious: boolean
}

/** At least two steps, or none. */
export function stepsIn(text: string): OfflineStep[] {
  const lines = stepsInList(text)
  if (lines.length > 1) return lines
  const spoken = stepsInSentences(text)
  return spoken.length > 1 ? spoken : []
}

/** A bullet or a number, a box to tick, and the item's own words. */
const ITEM = /^(?:([-*•–])|(?:step )?\(?\d{1,3}[.):])\s+(?:\[[ x]\]\s+)?(.*)$/i
const LATER = /^(?:and\s+)?(?:then|after|afterwards|next|finally|lastly|once)\b/i

/** The steps of a numbered list follow each other; those of a bulleted list only if their words say so. */
function stepsInList(text: string): OfflineStep[] {
  const items: { lines: string[]; isNumbered: boolean }[] = []
  let top: { indent: number; isNumbered: boolean } | null = null
  let isAfterBlank = false
  for (const line of text.split('\n')) {
    const words = line.trim()
    if (words === '') {
      isAfterBlank = true
      continue
    }
    const indent = blanksOf(line)
    const [, bullet, own] = ITEM.exec(words) ?? []
    const isNumbered = bullet === undefined
    if (own !== undefined) top ??= { indent, isNumbered }
    const last = items.at(-1)
    if (own !== undefined && top && indent <= top.indent && isNumbered === top.isNumbered) {
      if (hasWords(own)) items.push({ lines: [own], isNumbered })
    } else if (last && top && (indent > top.indent || !isAfterBlank)) last.lines.push(words)
    isAfterBlank = false
  }
  return items.map(({ lines, isNumbered }, place) => {
    const item = lines.join('\n')
    const rest = item.replace(MARK, '')
    return { text: isVerb(rest) ? rest : item, isAfterPrevious: place > 0 && (isNumbered || LATER.test(item)) }
  })
}

/** A piece of a sentence between two breaks. `from` is the place of its first word that says what to do. */
interface Part {
  from: number
  to: number
  mark: 'first' | 'later' | null
  isInstruction: boolean
}

const BREAK = /\n\s*\n|[.!?;:](?=\s|$)|,|\n(?=(?:first|then|next|after|finally)\b)|\b(?:and|then)\b/gi
const END_OF_SENTENCE = /^(?:[.!?;:]|\n\s*\n)/
const MARK = /^(?:first(?:ly)?|then|next|finally|lastly|afterwards|after (?:that|this)|secondly|thirdly)(?:[\s,:]+|$)/i
/** "Please", "we need to", "I want you to": the verb comes behind these words. */
const PRELUDE =
  /^(?:(?:please|kindly|also|let's|to)\s+|(?:(?:i|we|you)\s+)?(?:need|want|would like|have|should|must|can|could|will)\s+(?:(?:you|us)\s+)?){1,4}/i
const CONDITION = /^(?:if|when|whenever|unless)\b/i
/** Instructions in one sentence are taken apart if there are at least this many. */
const FEWEST_INSTRUCTIONS = 3

function stepsInSentences(text: string): OfflineStep[] {
  const steps: (Part & { isOpen: boolean })[] = []
  let before: Part | null = null
  for (const parts of sentencesOf(text)) {
    const [lead] = parts
    const last = parts.at(-1)
    if (!lead || !last) continue
    const isEnumeration = parts.filter((part) => part.isInstruction).length >= FEWEST_INSTRUCTIONS
    const isStart = (part: Part): boolean => part.mark !== null || (isEnumeration && part.isInstruction)
    const at = parts.findIndex(isStart)
    const open = steps.at(-1)
    if (at === -1) {
      if (open?.isOpen) open.to = last.to
      before = { ...lead, to: last.to }
      continue
    }
    const isOpen = !isEnumeration
    // "Research the market, then write" and "Research the market. Then write": the words before "then" are a step too.
    const earlier = at > 0 ? { ...lead, to: parts[at - 1]?.to ?? lead.to } : steps.length === 0 ? before : null
    if (parts[at]?.mark === 'later' && earlier) steps.push({ ...earlier, isOpen })
    for (const part of parts.slice(at)) {
      const current = steps.at(-1)
      if (isStart(part) || !current) steps.push({ ...part, isOpen })
      else current.to = part.to
    }
  }
  return steps.map(({ from, to, mark }, place) => ({
    text: text.slice(from, to).replace(/\s+/g, ' ').trim(),
    isAfterPrevious: place > 0 && mark === 'later',
  }))
}

/** Sentences end at stops, colons and blank lines; their parts at commas, "and" and "then". */
function* sentencesOf(text: string): Generator<Part[]> {
  let parts: Part[] = []
  let from = 0
  let seenTo = 0
  let isAmidWords = false
  let mark: Part['mark'] = null
  let isInOrder = false
  const close = (to: number): void => {
    const part = partOf(text, from, to, mark)
    mark = part.mark
    isInOrder ||= mark === 'first'
    // A mark without words ("First, …") belongs to the next part.
    if (!isAmidWords || part.from >= to) return
    mark = null
    const isMarked = part.isInstruction || isInOrder
    parts.push(isMarked ? part : { ...part, mark: null })
  }
  for (const { 0: found, index } of text.matchAll(BREAK)) {
    const isThen = found.toLowerCase() === 'then'
    isAmidWords ||= hasWords(text.slice(seenTo, index))
    seenTo = index + found.length
    if (isThen && isAmidWords && !isVerb(text.slice(seenTo, seenTo + LONGEST_LEAD))) continue
    close(index)
    from = seenTo
    isAmidWords = false
    if (isThen && !isConditional(text, parts)) mark = 'later'
    if (END_OF_SENTENCE.test(found)) {
      yield parts
      parts = []
    }
  }
  isAmidWords ||= hasWords(text.slice(seenTo))
  close(text.length)
  yield parts
}

/** In "If it fails, then mend it" nothing is put in order. */
const isConditional = (text: string, [lead]: readonly Part[]): boolean =>
  lead !== undefined && CONDITION.test(text.slice(lead.from, lead.from + LONGEST_LEAD))

/** The most of a part that is searched for its first words. */
const LONGEST_LEAD = 200

function partOf(text: string, start: number, to: number, given: Part['mark']): Part {
  const startOf = (from: number): string => text.slice(from, Math.min(to, from + LONGEST_LEAD))
  const words = start + blanksOf(startOf(start))
  const said = MARK.exec(startOf(words))?.[0] ?? ''
  const behindMark = words + said.length
  const behindPrelude = behindMark + (PRELUDE.exec(startOf(behindMark))?.[0].length ?? 0)
  const isInstruction = isVerb(startOf(behindPrelude))
  const mark = said === '' ? given : /^first/i.test(said) ? 'first' : 'later'
  return { from: isInstruction ? behindPrelude : behindMark, to, mark, isInstruction }
}

const blanksOf = (text: string): number => text.length - text.trimStart().length
const hasWords = (text: string): boolean => /[\p{L}\p{N}]/u.test(text)

/** The first sentence of a request that tells somebody to do something, and the rest; null if there is none. */
export function instructionIn(request: string): string | null {
  for (const { 0: sentence, index } of request.matchAll(/[^.!?\n]+/g)) {
    const { from, isInstruction } = partOf(request, index, index + sentence.length, null)
    if (isInstruction) return request.slice(from)
  }
  return null
}

export const isVerb = (text: string): boolean => VERBS.has(/^\s*(\p{L}+)/u.exec(text)?.[1]?.toLowerCase() ?? '')

const VERBS = new Set(
  `adapt add adjust advise agree align analyse analyze announce answer apply approve archive arrange ask assemble assess
  assign attach attend audit automate bake benchmark brainstorm break build buy calculate call cancel carry
  categorise categorize change check choose clarify classify clean clear close code collect combine compare compile
  complete compose compute condense configure confirm connect contact convert cook copy correct count create debug
  decide define delegate delete deliver deploy derive describe design detect determine develop dig disable discover discuss
  distribute do document draft draw edit eliminate email enable encrypt ensure enter estimate evaluate examine execute
  explain explore export extend extract file fill filter find finish fix forecast format gather generate give
  group hand help hire identify implement import improve inform inspect install integrate interview invent investigate
  invite keep label launch lay lead learn list load look make map mark measure meet mend merge migrate model monitor
  move name negotiate note notify offer open optimise optimize order organise organize outline pack paint pay perform
  persuade pick plan plant polish post prepare present price print prioritise prioritize produce profile proofread
  propose protect prototype prove publish put rank rate read rebuild recommend record reduce refactor refine register
  release remind remove rename render repair replace reply report reproduce request research resolve respond restore
  review revise rewrite run save say scan schedule score search secure select sell send separate set ship show simplify
  sketch solve sort specify split start state stop store study submit suggest sum summarise summarize survey switch
  synthesise synthesize take teach tell test think tidy trace track train transform translate triage try tune turn
  update upgrade upload use validate verify visit wash watch weigh write`
    .split(/\s+/)
    .filter((word) => word !== ''),
)
