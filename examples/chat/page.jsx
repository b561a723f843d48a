// A chat with the supervisor. `useChat` asks /api/chat, which front-end.ts passes on to Muster with its key.
import { useChat } from '@ai-sdk/react'
import { useEffect, useRef, useState } from 'react'
import { createRoot } from 'react-dom/client'

const id = new URLSearchParams(location.search).get('chat') ?? 'demo'
// Muster remembers the run of a chat; the page keeps the messages.
const kept = JSON.parse(localStorage.getItem(id) ?? '[]')

function Chat() {
  const [doing, setDoing] = useState('')
  const input = useRef(null)
  const { messages, sendMessage, regenerate, resumeStream, stop, status, error } = useChat({
    id,
    messages: kept,
    resume: true, // continues an answer that is still being written
    onData: ({ type, data }) => type === 'data-status' && setDoing(data.active_agent ?? ''),
  })
  const isBusy = status === 'submitted' || status === 'streaming'
  const needsAnswer = !isBusy && messages.at(-1)?.metadata?.status === 'ESCALATE'
  useEffect(() => localStorage.setItem(id, JSON.stringify(messages)), [messages])
  // Somebody may have answered the question in the inbox: a user who comes back to the page sees the further answer.
  useEffect(() => {
    if (!needsAnswer) return
    const look = () => resumeStream()
    addEventListener('focus', look)
    return () => removeEventListener('focus', look)
  }, [needsAnswer, resumeStream])

  const submit = (event) => {
    event.preventDefault()
    const text = input.current.value.trim()
    if (isBusy || text === '') return
    ask(() => sendMessage({ text }))
    input.current.value = ''
  }
  const ask = (send) => {
    setDoing('')
    send()
    input.current.focus()
  }
  return (
    <main data-status={status}>
      <div className="messages" role="log" aria-busy={isBusy}>
        <div>
          {messages.map((message) => (
            <article key={message.id} data-role={message.role} data-run={message.metadata?.run_id}>
              <p>{message.parts.map((part) => part.type === 'text' && part.text)}</p>
              {needsAnswer && message === messages.at(-1) && <small>Your answer is needed.</small>}
            </article>
          ))}
          {isBusy && <output>{doing === '' ? 'Thinking…' : `${doing.replaceAll('_', ' ')} is at work…`}</output>}
          {error && <p role="alert">{wordsOf(error)}</p>}
        </div>
      </div>
      <form onSubmit={submit}>
        <input ref={input} name="text" aria-label="Message" placeholder="A message" autoComplete="off" />
        <button type="submit" disabled={isBusy}>
          Send
        </button>
        {isBusy ? (
          <button type="button" onClick={() => ask(stop)}>
            Stop
          </button>
        ) : (
          <button type="button" onClick={() => ask(regenerate)} disabled={messages.length === 0}>
            Again
          </button>
        )}
      </form>
    </main>
  )
}

/** A request that is refused has Muster's JSON as its message; one that gets no answer has the browser's own words. */
function wordsOf(error) {
  if (error instanceof TypeError) return 'The server could not be reached. Try again.'
  try {
    return JSON.parse(error.message).error.message
  } catch {
    return error.message
  }
}

createRoot(document.body.appendChild(document.createElement('div'))).render(<Chat />)
