/** The connection failed, not the tool. `reason` completes "The MCP server failed: …". */
export class McpBroken extends Error {
  readonly reason: string
  /** The request cannot have been carried out: the server does not know the session. */
  readonly isSessionLost: boolean
  /** The last lines of a command's error output; for the person who set it up, never for a model. */
  readonly output: string

  constructor(reason: string, { cause, isSessionLost, output }: BrokenFacts) {
    super(`The MCP server failed: ${reason}.`, { cause })
    this.reason = reason
    this.isSessionLost = isSessionLost
    this.output = output
  }
}

interface BrokenFacts {
  cause: unknown
  isSessionLost: boolean
  output: string
}
