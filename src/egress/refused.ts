export type RefusalReason = 'invalid_url' | 'scheme' | 'userinfo' | 'private_address' | 'too_many_redirects'

const sentences: Record<RefusalReason, string> = {
  invalid_url: 'it is not a valid absolute URL',
  scheme: 'only http and https are allowed',
  userinfo: 'a user name or password in the URL is not allowed',
  private_address: 'it is not a public address',
  too_many_redirects: 'it redirected too many times',
}

/**
 * An expected error: tools hand it to the model, routes to the client. The message never names the address of a name,
 * so that the error cannot be used to map the inner network.
 */
export class EgressRefused extends Error {
  readonly host: string
  readonly reason: RefusalReason

  constructor(host: string, reason: RefusalReason) {
    super(`The request${host === '' ? '' : ` to "${host}"`} was refused: ${sentences[reason]}.`)
    this.name = 'EgressRefused'
    this.host = host
    this.reason = reason
  }
}

/** The refusal inside an error that undici wrapped ("fetch failed"), else null. */
export function findRefusal(error: unknown): EgressRefused | null {
  let current = error
  for (let depth = 0; depth < 5 && current instanceof Error; depth += 1) {
    if (current instanceof EgressRefused) return current
    current = current.cause
  }
  return null
}
