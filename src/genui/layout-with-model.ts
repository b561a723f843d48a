// A layout that the project's default model arranged. Without a fitting answer in time, after two tries, the layout of
// the facts is shown.

import { readFile } from 'node:fs/promises'
import { cutText } from '../kernel/cut-text.ts'
import { decisionOf, readDecision } from '../kernel/decision.ts'
import type { Layout } from '../kernel/genui.ts'
import { untilAborted } from '../tools/until-aborted.ts'
import { type Arranged, arrange } from './arrange.ts'
import { type LayoutFacts, layOut } from './layout.ts'

export interface LayoutQuestion {
  answer: ReturnType<typeof decisionOf>
  prompt: string
}

/** One answer of the project's default model. Null if it has no usable model. Rejects if there is no answer. */
export type AskForLayout = (question: LayoutQuestion, signal: AbortSignal) => Promise<string | null>

/** The time is short, because a person waits for the page. */
const ANSWERS_WITHIN_MS = 20_000
/** The model is asked once more if its first answer does not fit. */
const MOST_QUESTIONS = 2
/** The longest page that the model is shown, in characters. */
const LONGEST_PAGE = 24_000
/** Texts of a long page are cut to the first of these lengths with which it fits. Ids are shorter than each length. */
const TEXT_LENGTHS = [2_000, 400, 80]

const PROMPT = new URL('./layout-prompt.txt', import.meta.url)

export interface LayoutAsked {
  ask: AskForLayout
  /** Called with the reason if no answer of the model could be used. */
  onUnused: (reason: string) => void
  /** Fires when the reader no longer waits for the page. */
  signal: AbortSignal
  answersWithinMs?: number
}

/** Never rejects because of the model. */
export async function layOutWithModel(
  { ask, onUnused, signal: left, answersWithinMs = ANSWERS_WITHIN_MS }: LayoutAsked,
  facts: LayoutFacts,
): Promise<Layout> {
  const given = layOut(facts)
  const signal = AbortSignal.any([left, AbortSignal.timeout(answersWithinMs)])
  try {
    const arranged = await askForLayout(
      (prompt) => {
        const asked = ask({ answer: decisionOf('genui_layout'), prompt }, signal)
        return untilAborted(asked, signal)
      },
      { given, scenario: facts.scenario },
    )
    if (arranged === null) return given
    if (arranged.ok) return arranged.layout
    onUnused(`Its answer does not fit: ${arranged.problem}`)
  } catch (error) {
    if (left.aborted) return given
    const late = `It did not answer in ${answersWithinMs / 1_000} s.`
    onUnused(signal.aborted ? late : error instanceof Error ? error.message : String(error))
  }
  return given
}

/** Null if the project has no usable model. */
async function askForLayout(
  ask: (prompt: string) => Promise<string | null>,
  { given, scenario }: { given: Layout; scenario: LayoutFacts['scenario'] },
): Promise<Arranged | null> {
  const isFree = scenario === 'generic'
  const question = await promptFor(given, scenario, isFree)
  let arranged: Arranged | null = null
  for (let asked = 0; asked < MOST_QUESTIONS && !arranged?.ok; asked++) {
    const before: string = arranged ? `\n\nYour last answer did not fit: ${arranged.problem}` : ''
    const answer = await ask(`${question}${before}`)
    if (answer === null) return null
    const decided = readDecision('genui_layout', answer)
    arranged = decided.ok ? arrange(given, decided.decision, { isFree }) : decided
  }
  return arranged
}

async function promptFor(given: Layout, scenario: string, isFree: boolean): Promise<string> {
  const values: Record<string, string> = {
    SCENARIO: scenario,
    FREE: isFree ? ', and input, select, table, chart' : '',
    PAGE: pageOf(given),
  }
  const text = await readFile(PROMPT, 'utf8')
  // All placeholders are filled in one pass, so that text inside a value is not taken for a placeholder.
  return text.trim().replace(/\{\{(\w+)\}\}/g, (_, name: string) => values[name] ?? '')
}

/** The page as the model sees it. No text in the page can close the tag around the page. */
function pageOf({ components }: Layout): string {
  let page = ''
  for (const most of TEXT_LENGTHS) {
    page = JSON.stringify({ components }, (_, value: unknown) => shortened(value, most)).replaceAll('<', '\\u003c')
    if (page.length <= LONGEST_PAGE) return page
  }
  return cutText(page, LONGEST_PAGE)
}

function shortened(value: unknown, most: number): unknown {
  return typeof value === 'string' ? cutText(value, most, '…') : value
}
