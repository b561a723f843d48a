/** What happens to a flow run while it is under way, in the order in which it does, taken by the one who works on it. */
export interface Mailbox<Message> {
  put(message: Message): void
  isEmpty(): boolean
  /** Everything that has come, at least one. */
  take(): Promise<Message[]>
}

export function createMailbox<Message>(): Mailbox<Message> {
  let messages: Message[] = []
  let wake: (() => void) | null = null
  return {
    put: (message) => {
      messages.push(message)
      wake?.()
    },
    isEmpty: () => messages.length === 0,
    take: async () => {
      while (messages.length === 0) {
        await new Promise<void>((resolve) => {
          wake = resolve
        })
        wake = null
      }
      const taken = messages
      messages = []
      return taken
    },
  }
}
