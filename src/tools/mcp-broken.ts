/** The connection failed, not the tool. `reason` completes "The MCP server failed: …". */
export class McpBroken extends Error {
  readonly reason: string
  /** True if the server does not know the MCP session, so that the request cannot have been carried out. */
  readonly isSessionLost: boolean
  /** True if the request may have reached the server, so that nobody knows whether it was carried out. */
  readonly mayHaveActed: boolean
  /** The last lines of a command's error output; for the person who set it up, never for a model. */
  readonly output: string

  constructor(reason: string, { cause, isSessionLost, mayHaveActed, output }: BrokenFacts) {
    super(`The MCP server failed: ${reason}.`, { cause })
    this.reason = reason
    this.isSessionLost = isSessionLost
    this.mayHaveActed = mayHaveActed
    this.output = output
  }
}

interface BrokenFacts {
  cause: unknown
  isSessionLost: boolean
  mayHaveActed: boolean
  output: string
}
