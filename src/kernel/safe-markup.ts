// Texts that a page may render unchecked: no HTML, no images, links only to Muster or http(s). The rules look at single
// characters, so no parser can read the text differently.

/** In HTML and in Markdown a tag, a comment and an autolink begin with one of these pairs; nothing else does. */
const HTML = /<(?=[A-Za-z/!?])/g
/** A page loads images by itself, and their addresses can carry data away. Looking back keeps the search linear. */
const IMAGE = /(?<!!)!+\[/g
/**
 * The end of a link's words before an address that is not allowed. An address that literally begins with an allowed
 * scheme has that scheme, however its other characters are encoded.
 */
const FOREIGN_LINK = /\](?=[(:](?!\s*(?:https?:\/\/|\/(?![/\\])|#)))/gi

export const hasHtml = (text: string): boolean => text.search(HTML) !== -1

/** A space takes the meaning of a tag away and leaves the text readable, also in code. */
export const withoutHtml = (text: string): string => text.replace(HTML, '< ')

export const isSafeMarkdown = (text: string): boolean =>
  [HTML, IMAGE, FOREIGN_LINK].every((pattern) => text.search(pattern) === -1)

/** Images become links, and links to anything but Muster or http(s) become plain text. */
export const toSafeMarkdown = (text: string): string =>
  withoutHtml(text).replace(IMAGE, '[').replace(FOREIGN_LINK, '] ')
