// Beside the chat: the plan of the supervisor, and earlier chats.
import { ActionIcon, Text, Title, UnstyledButton } from '@mantine/core'
import { X } from 'lucide-react'
import { useState } from 'react'
import type { ToDoStatus } from '../../../../src/kernel/supervisor.ts'
import { Status } from '../../parts/status.tsx'
import { When } from '../../parts/when.tsx'
import classes from './chat.module.css'
import type { createKeptChats } from './kept-chats.ts'
import { agentName, type Doing } from './words.ts'

interface Props {
  chatId: string
  kept: ReturnType<typeof createKeptChats>
  doing: Doing
  onOpen: (chatId: string) => void
}

const STATUSES: Record<ToDoStatus, string> = {
  PENDING: 'pending',
  IN_PROGRESS: 'running',
  DONE: 'completed',
  BLOCKED: 'blocked',
}

export function ChatAside({ chatId, kept, doing, onOpen }: Props) {
  return (
    <aside className={classes.aside} aria-label="Plan and chats">
      <section>
        <Title order={2} mb="xs">
          Plan
        </Title>
        {doing.plan.length === 0 ? (
          <Text className="dim">The supervisor's plan appears here while it works.</Text>
        ) : (
          <ol className={classes.plan} aria-label="Plan">
            {doing.plan.map(({ id, description, status, owner_agent: owner }) => (
              <li key={id}>
                <Status of={STATUSES[status]} />
                <div>{description}</div>
                {owner && <div className="dim">{agentName(owner)}</div>}
              </li>
            ))}
          </ol>
        )}
      </section>
      <Chats chatId={chatId} kept={kept} onOpen={onOpen} />
    </aside>
  )
}

function Chats({ chatId, kept, onOpen }: Pick<Props, 'chatId' | 'kept' | 'onOpen'>) {
  const [forgotten, setForgotten] = useState(0)
  const chats = kept.list()
  if (chats.length === 0) return null
  return (
    <section data-forgotten={forgotten}>
      <Title order={2} mb="xs">
        Chats in this browser
      </Title>
      <ul className={classes.chats}>
        {chats.map(({ id, title, at }) => (
          <li key={id}>
            <UnstyledButton
              className={classes.open}
              aria-current={id === chatId ? 'true' : undefined}
              onClick={() => onOpen(id)}
            >
              <span className="cut">{title || 'A chat'}</span>
              <span className="dim">
                <When at={at} />
              </span>
            </UnstyledButton>
            {id !== chatId && (
              <ActionIcon
                size="sm"
                variant="subtle"
                color="gray"
                aria-label={`Forget the chat ${title}`}
                onClick={() => {
                  kept.forget(id)
                  setForgotten(forgotten + 1)
                }}
              >
                <X size={13} aria-hidden />
              </ActionIcon>
            )}
          </li>
        ))}
      </ul>
    </section>
  )
}
