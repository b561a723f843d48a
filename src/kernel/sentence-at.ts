/** "is missing", "must be a number": the message goes on from the name of its subject. */
export const isPredicate = (message: string): boolean => /^(is|has|must) /.test(message)

export const withStop = (text: string): string => (/[.?!]$/.test(text) ? text : `${text}.`)

/** `body.input is missing.`, `body.tools: There is no tool called "x".` */
export const sentenceAt = (where: string, message: string): string =>
  withStop(isPredicate(message) ? `${where} ${message}` : `${where}: ${message}`)
