// The front end keeps the messages of a chat: Muster remembers its runs. Chats are kept per person and project, the
// newest ones only.
import type { UIMessage } from 'ai'
import type { ChatMetadata } from '../../../../src/kernel/chat.ts'

export type Message = UIMessage<ChatMetadata>

export interface KeptChat {
  id: string
  /** The beginning of the first message. */
  title: string
  at: string
}

const MOST_CHATS = 20
const LONGEST_TITLE = 60

type Store = Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>

export function createKeptChats(store: Store, personId: string, projectId: string) {
  const scope = `muster.chats ${personId} ${projectId}`
  const messagesAt = (id: string): string => `${scope} ${id}`

  const list = (): KeptChat[] => read(store, scope).filter(isKeptChat)

  return {
    list,
    messages: (id: string): Message[] => read(store, messagesAt(id)).filter(isMessage),
    keep: (id: string, messages: readonly Message[], at: string): void => {
      const first = messages[0]
      if (!first) return
      const others = list().filter((chat) => chat.id !== id)
      const chats = [{ id, title: textOf(first).slice(0, LONGEST_TITLE), at }, ...others]
      for (const { id: old } of chats.slice(MOST_CHATS)) store.removeItem(messagesAt(old))
      write(store, scope, chats.slice(0, MOST_CHATS))
      write(store, messagesAt(id), messages)
    },
    forget: (id: string): void => {
      store.removeItem(messagesAt(id))
      write(
        store,
        scope,
        list().filter((chat) => chat.id !== id),
      )
    },
  }
}

export const textOf = ({ parts }: Message): string =>
  parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n')

function read(store: Store, key: string): unknown[] {
  try {
    const kept: unknown = JSON.parse(store.getItem(key) ?? '[]')
    return Array.isArray(kept) ? kept : []
  } catch {
    return []
  }
}

/** A full store loses the newest messages after a reload, and nothing else. */
function write(store: Store, key: string, value: unknown): void {
  try {
    store.setItem(key, JSON.stringify(value))
  } catch {
    store.removeItem(key)
  }
}

const isKeptChat = (value: unknown): value is KeptChat => hasTexts(value, 'id', 'title', 'at')

const isMessage = (value: unknown): value is Message =>
  hasTexts(value, 'id', 'role') && 'parts' in value && Array.isArray(value.parts)

function hasTexts(value: unknown, ...names: string[]): value is object {
  return (
    typeof value === 'object' && value !== null && names.every((name) => typeof Reflect.get(value, name) === 'string')
  )
}
