/**
 * A text of more than `most` characters becomes its beginning and the mark, which are `most` together at most. Half of a
 * surrogate pair is no text and cannot be stored, so it is left out.
 */
export const cutText = (text: string, most: number, mark = ''): string =>
  text.length <= most ? text : `${text.slice(0, Math.max(0, most - mark.length)).replace(HALF, '')}${mark}`

const HALF = /[\ud800-\udbff]$/
