/** "is missing", "must be a number": the message goes on from the name of what it is about. */
export const goesOn = (message: string): boolean => /^(is|has|must) /.test(message)

/** `body.input is missing.`, `body.tools: There is no tool called "x".` */
export function sentenceAt(where: string, message: string): string {
  const said = goesOn(message) ? `${where} ${message}` : `${where}: ${message}`
  return /[.?]$/.test(said) ? said : `${said}.`
}
