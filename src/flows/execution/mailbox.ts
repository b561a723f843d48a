export interface Mailbox<Message> {
  put(message: Message): void
  isEmpty(): boolean
  /** All messages that have come, at least one. */
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
