/** Cuts a text to `most` characters, mark included. Half a surrogate pair cannot be stored, so it is left out. */
export const cutText = (text: string, most: number, mark = ''): string =>
  text.length <= most ? text : `${text.slice(0, Math.max(0, most - mark.length)).replace(HALF, '')}${mark}`

const HALF = /[\ud800-\udbff]$/
