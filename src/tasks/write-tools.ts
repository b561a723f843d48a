// The tools that change Muster's own data, for runs: each call is carried out inside the transaction that journals it.
import { z } from 'zod'
import type { Db } from '../db/pool.ts'
import { nameField } from '../kernel/fields.ts'
import { idFrom } from '../kernel/id.ts'
import { taskInput } from '../kernel/task.ts'
import type { WriteCall, WriteResult, WriteTool } from '../kernel/tool.ts'
import { changeAsAgent } from '../objects/change-as-agent.ts'
import { graphTools, isGraphTool, parseChange } from '../objects/object-tools.ts'
import type { ObjectWriter } from '../objects/write-objects.ts'
import { zodArguments } from '../tools/arguments.ts'
import { createTaskAsAgent } from './create-task-as-agent.ts'
import { liveRights } from './live-rights.ts'
import { suggest } from './suggest.ts'

const taskArguments = z.strictObject({
  title: taskInput.shape.title,
  description: taskInput.shape.description,
  priority: taskInput.shape.priority,
  assigned_to: nameField.optional().describe('The name or the id of an agent. Left out, people do it.'),
})
export type TaskArguments = z.infer<typeof taskArguments>

const taskCreate: WriteTool = {
  kind: 'write',
  name: 'task_create',
  description: `Asks for a piece of work: of another agent, or of people where nobody is named.

- The task waits in their list; you do not get its result. Use spawn_agent where you need the answer to go on.
- Say in "description" everything that is needed to do it.`,
  ...zodArguments(taskArguments),
  inMode: () => taskCreate,
}

export const writeTools: readonly WriteTool[] = [...graphTools, taskCreate]

export function createWriteTools({ writer }: { writer: ObjectWriter }) {
  return async (tx: Db, call: WriteCall): Promise<WriteResult> => {
    const { name, args, key, projectId, agentId, runId, depth } = call
    if (name === taskCreate.name) {
      return createTaskAsAgent(tx, { ...call, taskId: idFrom(key), args: taskArguments.parse(args) })
    }
    if (!isGraphTool(name)) throw new Error(`there is no tool called ${name} that writes`)
    const parsed = parseChange(name, args)
    const rights = await liveRights(tx, call)
    const { started, ...outcome } = await changeAsAgent(
      tx,
      {
        writer,
        suggest: (_tx, change) =>
          suggest(tx, { taskId: idFrom(key), projectId, agentId, runId, change, reasoning: parsed.reasoning, depth }),
      },
      { projectId, agentId, runId, rights, depth, ...parsed },
    )
    return { ...outcome, hasStarted: started > 0 }
  }
}
