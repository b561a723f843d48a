// The tools with which runs change Muster's own data. Each call is carried out in the transaction that journals it.
import type { Db } from '../db/pool.ts'
import { idFrom } from '../kernel/id.ts'
import type { Rights } from '../kernel/rights.ts'
import type { WriteCall, WriteResult, WriteTool } from '../kernel/tool.ts'
import { changeAsAgent } from '../objects/change-as-agent.ts'
import { graphTools, isGraphTool, parseChange } from '../objects/object-tools.ts'
import type { ObjectWriter } from '../objects/write-objects.ts'
import { zodArguments } from '../tools/arguments.ts'
import { createTaskAsAgent, taskArguments } from './create-task-as-agent.ts'
import { liveRights } from './live-rights.ts'
import { suggest } from './suggest.ts'

const taskCreate: WriteTool = {
  kind: 'write',
  name: 'task_create',
  description: `Asks another agent for a piece of work, or people if no agent is named.

- The task waits in the assignee's list; you do not get its result. Use spawn_agent if you need the answer to go on.
- Say in "description" everything that is needed to do it.`,
  ...zodArguments(taskArguments),
  inMode: () => taskCreate,
}

export const writeTools: readonly WriteTool[] = [...graphTools, taskCreate]

export function createWriteTools({ writer }: { writer: ObjectWriter }) {
  return async (tx: Db, call: WriteCall): Promise<WriteResult> => {
    const { name, args, ref, projectId, agentId, runId, depth } = call
    if (name === taskCreate.name) {
      return createTaskAsAgent(tx, { ...call, taskId: idFrom(ref), args: taskArguments.parse(args) })
    }
    if (!isGraphTool(name)) throw new Error(`there is no writing tool called ${name}`)
    const parsed = parseChange(name, args)
    const live = await liveRights(tx, call)
    const rights: Rights | null = live && call.approval ? { ...live, mode: 'execute' } : live
    const { started, ...outcome } = await changeAsAgent(
      tx,
      {
        writer,
        suggest: (_tx, change) =>
          suggest(tx, { taskId: idFrom(ref), projectId, agentId, runId, change, reasoning: parsed.reasoning, depth }),
      },
      { projectId, agentId, runId, rights, depth, approvedBy: call.approval?.by ?? null, ...parsed },
    )
    return { ...outcome, hasStarted: started > 0 }
  }
}
