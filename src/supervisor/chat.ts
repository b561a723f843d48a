// Chats of front ends with the supervisor. A message is a task, or an answer if the chat's run waits for one, or lets the
// run go on if its model was unavailable. The front end keeps the messages; this file remembers only the newest run of a
// chat.

import type { Db } from '../db/pool.ts'
import type { FollowOptions } from '../journal/follow.ts'
import type { ChatChunk, ChatMessage, ChatMetadata, ChatRequest } from '../kernel/chat.ts'
import { isChatId } from '../kernel/chat.ts'
import { cutText } from '../kernel/cut-text.ts'
import { invalidRequest } from '../kernel/errors.ts'
import { idFrom } from '../kernel/id.ts'
import type { Run } from '../kernel/run.ts'
import { getRun } from '../runs/read-runs.ts'
import { readRunAnswer } from './answer.ts'
import { type FinalData, followSupervisor } from './follow.ts'
import { awaitedWord, type Continuation, continueSupervisor, startSupervisor } from './start.ts'

export interface Turn {
  projectId: string
  request: ChatRequest
  /** The variant named by SYSTEM_VARIANT. */
  ofProcess: string | null
}

export interface Taken {
  run: Run
  /** The answer to the message begins after this event of the run. */
  after: number
  /** True if the message was sent before, and its answer is complete or being written. */
  isRepeated: boolean
}

/** Handles the newest message: continues the chat's run if it waits for the person, otherwise starts a run. */
export async function takeChatTurn(
  tx: Db,
  parts: Continuation,
  { projectId, request, ofProcess }: Turn,
): Promise<Taken> {
  const { id: chatId, trigger } = request
  const { task, earlier, message, hasId } = readMessages(request.messages)
  // Messages of a chat are handled one after the other. The lock also covers the first messages, which find no row yet.
  await tx.query(`select pg_advisory_xact_lock(hashtextextended('chat ' || $1::text || ' ' || $2::text, 0))`, [
    projectId,
    chatId,
  ])
  const { rows } = await tx.query<ChatRow>(
    'select run_id, message, after_seq from chats where project_id = $1 and chat_id = $2',
    [projectId, chatId],
  )
  const [chat] = rows
  if (chat) {
    const isSame = chat.message === message
    const isAnew = trigger === 'regenerate-message'
    if (isSame && !isAnew && (await isAnswered(tx, projectId, chat, hasId))) {
      return { run: await getRun(tx, projectId, chat.run_id), after: Number(chat.after_seq), isRepeated: true }
    }
    const awaited = await awaitedWord(tx, projectId, chat.run_id)
    // A run that was unavailable has given no answer yet that another run could give anew.
    if (awaited !== null && (!isAnew || (isSame && awaited === 'unavailable'))) {
      const said = isSame && awaited === 'unavailable' ? null : task
      const { run } = await continueSupervisor(tx, parts, { projectId, runId: chat.run_id, said })
      const after = await answerStart(tx, run.id)
      await note(tx, { projectId, chatId, runId: run.id, message: isSame || hasId ? message : null, after })
      return { run, after, isRepeated: false }
    }
  }
  const run = await startSupervisor(tx, projectId, {
    task,
    metadata: { messages: earlier },
    contextId: chatId,
    requested: request.system_variant ?? null,
    ofProcess,
    trigger: { chat_id: chatId },
  })
  await note(tx, { projectId, chatId, runId: run.id, message, after: 0 })
  return { run, after: 0, isRepeated: false }
}

interface ChatRow {
  run_id: string
  message: string | null
  after_seq: string
}

/**
 * True if a repeated message has its answer in this run. A failed task is tried again, and a completed task may be
 * given again; an answer to a question never becomes a task. A message without an id that is not an answer may be a new one.
 */
async function isAnswered(
  db: Db,
  projectId: string,
  { run_id: runId, after_seq: after }: ChatRow,
  hasId: boolean,
): Promise<boolean> {
  const { status } = (await readRunAnswer(db, projectId, runId)).result
  return status === 'RUNNING' || status === 'ESCALATE' || (status === 'DONE' && Number(after) > 0 && hasId)
}

async function note(
  tx: Db,
  chat: { projectId: string; chatId: string; runId: string; message: string | null; after: number },
): Promise<void> {
  await tx.query(
    `insert into chats (project_id, chat_id, run_id, message, after_seq) values ($1, $2, $3, $4, $5)
     on conflict (project_id, chat_id) do update
       set run_id = excluded.run_id, message = excluded.message, after_seq = excluded.after_seq, updated_at = muster.now()`,
    [chat.projectId, chat.chatId, chat.runId, chat.message, chat.after],
  )
}

const MOST_MESSAGES = 50
/** The most characters of all earlier messages together, and of one message. */
const MOST_CHARACTERS = 40_000
const LONGEST_MESSAGE = 10_000

interface Said {
  role: ChatMessage['role']
  content: string
}

/**
 * The task, and as many of the newest earlier messages as a prompt has room for. `message` identifies the newest
 * message by its id and its words. Without ids the same words at the same position are the same task; for answers that
 * would be wrong, because one word may answer two questions.
 */
export function readMessages(messages: readonly ChatMessage[]): {
  task: string
  earlier: Said[]
  message: string
  hasId: boolean
} {
  const place = messages.findLastIndex(({ role }) => role === 'user')
  const newest = messages[place]
  if (!newest) throw invalidRequest('messages: there is no message of the user.')
  if (newest.parts.some(({ type }) => type === 'file')) {
    throw invalidRequest('messages: the newest message holds a file; the supervisor reads text only.')
  }
  const task = textOf(newest)
  if (task.trim() === '') throw invalidRequest('messages: the newest message of the user holds no text.')
  const earlier: Said[] = []
  let room = MOST_CHARACTERS
  for (const message of messages.slice(0, place).toReversed()) {
    const content = cutText(textOf(message), LONGEST_MESSAGE, ' [cut]')
    if (content.trim() === '') continue
    room -= content.length
    if (room < 0 || earlier.length === MOST_MESSAGES) break
    earlier.push({ role: message.role, content })
  }
  const hasId = typeof newest.id === 'string'
  return { task, earlier: earlier.reverse(), message: idFrom(`${hasId ? newest.id : place} ${task}`), hasId }
}

const textOf = ({ parts }: ChatMessage): string =>
  parts.flatMap(({ type, text }) => (type === 'text' && typeof text === 'string' ? [text] : [])).join('\n')

/**
 * The answer that a reader may resume, or null: the one that is being written, or the one that followed a person's
 * reply in the inbox and was not shown yet.
 */
export async function answerUnderWay(db: Db, projectId: string, chatId: string): Promise<ChatAnswer | null> {
  if (!isChatId(chatId)) return null
  const { rows } = await db.query<Pick<ChatRow, 'run_id' | 'after_seq'>>(
    'select run_id, after_seq from chats where project_id = $1 and chat_id = $2',
    [projectId, chatId],
  )
  const [chat] = rows
  if (!chat) return null
  const { run_id: runId } = chat
  // The seq is read before the status: a question that the run asks in between is a part of this answer.
  const after = await answerStart(db, runId)
  const { result } = await readRunAnswer(db, projectId, runId)
  const isOpen =
    result.status === 'RUNNING' || (after > Number(chat.after_seq) && (await isAnsweredSince(db, runId, after)))
  return isOpen ? { runId, after } : null
}

async function isAnsweredSince(db: Db, runId: string, seq: number): Promise<boolean> {
  const { rowCount } = await db.query(
    `select from run_events where run_id = $1 and seq > $2 and kind = 'supervisor.answered' and origin_seq is null
       and data->>'task_id' is not null limit 1`,
    [runId, seq],
  )
  return (rowCount ?? 0) > 0
}

export interface ChatAnswer {
  runId: string
  /** The seq of the event after which the answer begins. */
  after: number
}

/**
 * The answer as chunks, from its beginning. Its message has the same id for every reader, so that a front end that
 * resumes replaces the part that it has. Ends with `finish`, unless the signal fires.
 */
export async function* streamAnswer(
  source: FollowOptions & { db: Db },
  { projectId, runId, after }: ChatAnswer & { projectId: string },
  signal: AbortSignal,
): AsyncGenerator<ChatChunk> {
  const answer = createAnswer(runId)
  yield { type: 'start', messageId: idFrom(`${runId} answer ${after}`), messageMetadata: { run_id: runId } }
  yield { type: 'start-step' }
  for await (const { event } of followSupervisor(source, { projectId, runId }, { after, signal })) {
    switch (event.event_type) {
      case 'token':
        yield* answer.say(event.data.text)
        break
      case 'status_update':
        if (event.data.reset === true) yield* answer.takeBack()
        else yield { type: 'data-status', data: event.data, transient: true }
        break
      case 'final':
        yield* answer.end(event.data)
    }
  }
}

/** The seq after which the answer begins: the seq of the last pause at which the run's earlier answer was complete. */
async function answerStart(db: Db, runId: string): Promise<number> {
  const { rows } = await db.query<{ seq: number }>(
    `select seq from run_events where run_id = $1 and kind = 'run.paused' and origin_seq is null
       and data->>'pause_reason' in ('human', 'unavailable')
     order by seq desc limit 1`,
    [runId],
  )
  return rows[0]?.seq ?? 0
}

/** The text of the answer that the reader has so far. */
function createAnswer(runId: string) {
  let part: { id: string; text: string } | null = null
  let parts = 0

  function* say(text: string): Generator<ChatChunk> {
    if (!part) {
      part = { id: `text-${++parts}`, text: '' }
      yield { type: 'text-start', id: part.id }
    }
    part.text += text
    yield { type: 'text-delta', id: part.id, delta: text }
  }

  function* takeBack(): Generator<ChatChunk> {
    if (part) yield { type: 'reset-step' }
    part = null
  }

  function* end({ status, output, error }: FinalData): Generator<ChatChunk> {
    const content = output?.content ?? part?.text ?? ''
    if (content !== (part?.text ?? '')) {
      yield* takeBack()
      yield* say(content)
    }
    if (part) yield { type: 'text-end', id: part.id }
    yield { type: 'finish-step' }
    const fault = error && { code: error.code, message: error.message }
    const metadata: ChatMetadata = {
      run_id: runId,
      ...(status === 'RUNNING' ? {} : { status }),
      ...(fault ? { error: fault } : {}),
    }
    if (fault) {
      yield { type: 'message-metadata', messageMetadata: metadata }
      yield { type: 'error', errorText: fault.message }
    }
    yield { type: 'finish', finishReason: fault ? 'error' : 'stop', messageMetadata: metadata }
  }

  return { say, takeBack, end }
}
