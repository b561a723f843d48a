// Makes texts of agents and people fit for a layout. These texts are data: they are cut, and cannot become markup.
import { cutText } from '../kernel/cut-text.ts'
import { LONGEST_LABEL, LONGEST_TEXT, LONGEST_VALUE } from '../kernel/genui.ts'
import { toSafeMarkdown, withoutHtml } from '../kernel/safe-markup.ts'

/** A text is cut before and after its tags are broken up, which lengthens it; a huge text is not worth the work. */
const cutAfter = (text: string, most: number, change: (text: string) => string): string =>
  cutText(change(cutText(text, most, '…')), most, '…')

export const asText = (text: string): string => cutAfter(text, LONGEST_TEXT, withoutHtml)
export const asLabel = (text: string): string => cutAfter(text, LONGEST_LABEL, withoutHtml)

const END = '\n\n[cut]'

/** Cuts a long text. The mark is added before the text is made safe, because it may follow half a link. */
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

/** One line for the cell of a table. Only the part of the text that may be shown is read. */
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

/** Characters that turn the direction of text or have no width could make a value look like another value. */
export const visible = (text: string): string =>
  text.replace(
    /[\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]|[\u{e0000}-\u{e007f}]/gu,
    (mark) => `⟨U+${(mark.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}⟩`,
  )

/** Writes any JSON value as people read it. */
export const inWords = (value: unknown): string =>
  typeof value === 'string' ? value : (JSON.stringify(value, null, 2) ?? '')
