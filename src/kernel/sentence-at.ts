/** `body.input is missing.`, `body.tools: There is no tool called "x".` */
export function sentenceAt(where: string, message: string): string {
  const said = /^(is|has|must) /.test(message) ? `${where} ${message}` : `${where}: ${message}`
  return /[.?]$/.test(said) ? said : `${said}.`
}
