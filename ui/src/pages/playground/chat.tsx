// The chat itself. Muster keeps the runs of the chat, and this browser keeps its messages. A reload goes on with the
// answer that is being written.
import { useChat } from '@ai-sdk/react'
import { useQueryClient } from '@tanstack/react-query'
import { DefaultChatTransport } from 'ai'
import { useEffect, useMemo, useRef, useState } from 'react'
import { CHAT_PATH, cancelRun, ofProject, readAnswer } from '../../api/chats.ts'
import { useMe } from '../../app/gate.tsx'
import { tellProblem } from '../../parts/use-write.ts'
import classes from './chat.module.css'
import { ChatAside } from './chat-aside.tsx'
import { Composer } from './composer.tsx'
import { createKeptChats, type Message } from './kept-chats.ts'
import { Messages } from './messages.tsx'
import { type Doing, IDLE, nextDoing, problemOf, withAnswer } from './words.ts'

interface Props {
  projectId: string
  chatId: string
  /** Null: Muster chooses by the weights. */
  variant: string | null
  onOpen: (chatId: string) => void
}

const DRAW_EVERY_MS = 50

export function Chat({ projectId, chatId, variant, onOpen }: Props) {
  const kept = useKept(projectId)
  const client = useQueryClient()
  const [doing, setDoing] = useState<Doing>(IDLE)
  const transport = useTransport(projectId, variant)
  const [first] = useState(() => kept.messages(chatId))
  const chat = useChat<Message>({
    id: chatId,
    transport,
    messages: first,
    resume: true,
    throttle: DRAW_EVERY_MS,
    onData: (part) => setDoing((before) => nextDoing(before, part)),
    onFinish: () => void client.invalidateQueries({ queryKey: ['task', projectId] }),
  })
  const { messages, status, error } = chat
  const isBusy = status === 'submitted' || status === 'streaming'
  const last = messages.at(-1)
  const asks = !isBusy && last?.role === 'assistant' && last.metadata?.status === 'ESCALATE'
  // A message is kept when it begins and when it ends, not at each of its words.
  // biome-ignore lint/correctness/useExhaustiveDependencies: see above
  useEffect(() => kept.keep(chatId, messages, new Date().toISOString()), [kept, chatId, last?.id, status])
  useAnswerElsewhere(asks, chat.resumeStream)
  useMissedAnswer(projectId, first, chat.setMessages)
  const stop = (): void => {
    const runId = last?.role === 'assistant' ? last.metadata?.run_id : undefined
    // The stream tells the end of a cancelled run. Without a run there is nothing to cancel yet.
    if (runId === undefined) return void chat.stop()
    cancelRun(projectId, runId).catch(tellProblem)
  }
  const send = (text: string): void => {
    setDoing(IDLE)
    void chat.sendMessage({ text })
  }
  // A failed task is given once more. A message without an end is sent again, and Muster goes on with its answer.
  const retry = (): void => {
    setDoing(IDLE)
    void (last?.metadata?.status === 'FAILED' ? chat.regenerate() : chat.sendMessage())
  }
  return (
    <div className={classes.columns}>
      <div className={classes.chat}>
        <Messages
          projectId={projectId}
          messages={messages}
          isBusy={isBusy}
          doing={doing}
          asks={asks}
          onAnswered={() => void chat.resumeStream()}
          problem={isBusy ? null : problemOf(last, error)}
          onRetry={retry}
        />
        <Composer isBusy={isBusy} asks={asks} onSend={send} onStop={stop} />
      </div>
      <ChatAside chatId={chatId} kept={kept} doing={doing} onOpen={onOpen} />
    </div>
  )
}

function useKept(projectId: string) {
  const { id } = useMe()
  return useMemo(() => createKeptChats(localStorage, id ?? 'admin', projectId), [id, projectId])
}

/** The transport of a chat stays the same; each message is sent to the variant that is chosen then. */
function useTransport(projectId: string, variant: string | null) {
  const chosen = useRef(variant)
  useEffect(() => {
    chosen.current = variant
  }, [variant])
  return useMemo(
    () =>
      new DefaultChatTransport<Message>({
        api: CHAT_PATH,
        headers: ofProject(projectId),
        body: () => (chosen.current === null ? {} : { system_variant: chosen.current }),
      }),
    [projectId],
  )
}

/** Somebody may have answered the question in the inbox: whoever comes back to this page sees the further answer. */
function useAnswerElsewhere(asks: boolean, resume: () => Promise<void>): void {
  useEffect(() => {
    if (!asks) return
    const look = (): void => void resume()
    addEventListener('focus', look)
    return () => removeEventListener('focus', look)
  }, [asks, resume])
}

/** The answer to the newest message may have been completed while nobody followed it. */
function useMissedAnswer(
  projectId: string,
  kept: readonly Message[],
  setMessages: (change: (messages: Message[]) => Message[]) => void,
): void {
  useEffect(() => {
    const last = kept.at(-1)
    const runId = last?.metadata?.run_id
    if (last?.role !== 'assistant' || runId === undefined || last.metadata?.status !== undefined) return
    // A run that cannot be read leaves the message as it was kept.
    readAnswer(projectId, runId).then(
      ({ result }) => setMessages((messages) => withAnswer(messages, last.id, result)),
      () => {},
    )
  }, [projectId, kept, setMessages])
}
