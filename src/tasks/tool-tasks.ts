// A task that tells people of a tool that no live process has, and that runs wait for.
import type { Db } from '../db/pool.ts'
import { cleanText } from '../journal/clean-json.ts'
import type { LongToolWait } from '../journal/tool-waits.ts'
import { cutText } from '../kernel/cut-text.ts'
import { newId } from '../kernel/id.ts'
import { type Creator, MAX_TITLE } from '../kernel/task.ts'

const KIND = 'tool_missing'
const MAX_NAMED = 20

/** Makes the task, or returns the one that is open already: one for each tool of a project. */
export async function askForTool(tx: Db, { project_id: projectId, tool, agents }: LongToolWait): Promise<string> {
  const { rows } = await tx.query<{ id: string }>(
    `select id from tasks where project_id = $1 and kind = 'escalation' and status in ('pending', 'in-progress')
       and metadata->>'kind' = '${KIND}' and metadata->>'tool' = $2 limit 1`,
    [projectId, tool],
  )
  if (rows[0]) return rows[0].id
  const id = newId()
  const creator: Creator = { type: 'agent', id: agents.find((agent) => agent.id !== null)?.id ?? null }
  const metadata = { kind: KIND, tool, agent_ids: agents.flatMap((agent) => agent.id ?? []).slice(0, MAX_NAMED) }
  await tx.query(
    `insert into tasks (id, project_id, kind, title, description, priority, created_by, metadata)
     values ($1, $2, 'escalation', $3, $4, 'high', $5, $6)`,
    [
      id,
      projectId,
      cleanText(cutText(`No process has the tool ${tool}`, MAX_TITLE)),
      cleanText(descriptionOf(tool, agents)),
      JSON.stringify(creator),
      JSON.stringify(metadata),
    ],
  )
  return id
}

/** Completes tasks about tools that are back. */
export async function closeToolTasks(tx: Db, ids: readonly string[]): Promise<void> {
  await tx.query(
    `update tasks set status = 'completed', result = '"No run waits for the tool any more."', completed_at = muster.now()
     where id = any($1::uuid[]) and status in ('pending', 'in-progress')`,
    [ids],
  )
}

function descriptionOf(tool: string, agents: LongToolWait['agents']): string {
  const names = agents.map((agent) => agent.name).toSorted()
  const more = names.length > MAX_NAMED ? `, and ${names.length - MAX_NAMED} more` : ''
  return [
    `Runs have waited for an hour, because no live process has the tool ${tool}.`,
    `These agents name it: ${names.slice(0, MAX_NAMED).join(', ')}${more}.`,
    'Start a process whose app module has the tool, or take the tool from these agents; the runs then continue by',
    'themselves. Nothing was lost, and no attempt was counted.',
  ].join('\n')
}
