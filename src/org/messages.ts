import { type RowOf, tellInstants } from '../db/instants.ts'
import { listPage, type PageQuery } from '../db/list-page.ts'
import { columnsOf } from '../db/lists.ts'
import type { Db } from '../db/pool.ts'
import { cleanText } from '../journal/clean-json.ts'
import type { AgentMessage, MessageKind } from '../kernel/agent-message.ts'
import type { Page } from '../kernel/fields.ts'
import { idFrom } from '../kernel/id.ts'
import { type Log, silentLog } from '../kernel/log.ts'
import { logOnCommit } from './log-on-commit.ts'

export interface NewMessage {
  projectId: string
  from: string
  to: string
  kind: MessageKind
  body: string
  taskId?: string | null
  key: string
}

/** A second message with the same key is not stored. Keys contain ids, so keys of different projects differ. */
export const messageId = (key: string): string => idFrom(`message ${key}`)

/** Messages between agents are rows: no model is called to deliver or to read them. */
export async function sendMessages(db: Db, messages: readonly NewMessage[], log: Log = silentLog): Promise<void> {
  if (messages.length === 0) return
  const { rows } = await db.query<SentMessage>(
    `insert into agent_messages (id, project_id, from_agent, to_agent, kind, body, task_id)
     select * from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::uuid[], $5::text[], $6::text[], $7::uuid[])
     on conflict (id) do nothing
     returning ${SENT}`,
    columnsOf(messages, ({ key, projectId, from, to, kind, body, taskId = null }) => {
      return [messageId(key), projectId, from, to, kind, cleanText(body), taskId]
    }),
  )
  noteSent(db, log, rows)
}

/** SQL for the columns of a new message that the log needs. */
export const SENT = `project_id, from_agent, to_agent, kind, task_id,
  (select coalesce(t.root_task_id, t.id) from tasks t where t.id = task_id) as root_task_id`

export interface SentMessage {
  project_id: string
  from_agent: string
  to_agent: string
  kind: MessageKind
  task_id: string | null
  root_task_id: string | null
}

export function noteSent(tx: Db, log: Log, messages: readonly SentMessage[]): void {
  for (const { project_id, from_agent, to_agent, kind, task_id, root_task_id } of messages) {
    const about = { project_id, agent_id: from_agent, task_id, correlation_id: root_task_id }
    logOnCommit(tx, log, 'message.sent', about, { to_agent_id: to_agent, kind })
  }
}

interface MessageRow extends RowOf<Omit<AgentMessage, 'from' | 'to'>> {
  project_id: string
  from_agent: string
  to_agent: string
}

export async function listMessages(
  db: Db,
  projectId: string,
  agentId: string,
  query: PageQuery,
): Promise<Page<AgentMessage>> {
  const columns = 'id, project_id, from_agent, to_agent, kind, body, task_id, created_at'
  return listPage<MessageRow, AgentMessage>(db, {
    sql: [
      `select ${columns} from agent_messages where from_agent = $2 and project_id = $1`,
      `select ${columns} from agent_messages where to_agent = $2 and from_agent <> $2 and project_id = $1`,
    ],
    values: [projectId, agentId],
    query,
    toItem: ({ from_agent: from, to_agent: to, project_id: _, ...row }) => ({ ...tellInstants(row), from, to }),
  })
}
