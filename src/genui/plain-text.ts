// Texts of agents and people, made fit for a layout. What they wrote is data: it is cut, and it cannot become markup.
import { cutText } from '../kernel/cut-text.ts'
import { LONGEST_LABEL, LONGEST_TEXT, LONGEST_VALUE } from '../kernel/genui.ts'
import { toSafeMarkdown, withoutHtml } from '../kernel/safe-markup.ts'

/** Twice: breaking up a tag makes a text longer, and a long text should not be broken up whole. */
const cutAfter = (text: string, most: number, change: (text: string) => string): string =>
  cutText(change(cutText(text, most, '…')), most, '…')

export const asText = (text: string): string => cutAfter(text, LONGEST_TEXT, withoutHtml)
export const asLabel = (text: string): string => cutAfter(text, LONGEST_LABEL, withoutHtml)

const END = '\n\n[cut]'

/** A long text loses its end, and says so. The end is there before the text is made safe: it may follow half a link. */
export function asMarkdown(text: string): string {
  let safe = text.length <= LONGEST_VALUE ? toSafeMarkdown(text) : null
  for (
    let most = LONGEST_VALUE - END.length;
    safe === null || safe.length > LONGEST_VALUE;
    most = Math.floor(most / 2)
  ) {
    safe = toSafeMarkdown(`${cutText(text, most)}${END}`)
  }
  return safe
}

/** For the cells of a table: one line. No more of a text is looked at than may be shown. */
export const asCell = (text: string, most = 300): string =>
  cutText(
    visible(
      cutText(text, 2 * most)
        .toWellFormed()
        .replaceAll(/\s+/g, ' ')
        .trim(),
    ),
    most,
    '…',
  )

/** Marks that turn the direction of text or take no room could show another value than the one that is meant. */
export const visible = (text: string): string =>
  text.replace(
    /[\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]|[\u{e0000}-\u{e007f}]/gu,
    (mark) => `⟨U+${(mark.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}⟩`,
  )

/** Any JSON value as people read it. */
export const inWords = (value: unknown): string =>
  typeof value === 'string' ? value : (JSON.stringify(value, null, 2) ?? '')
