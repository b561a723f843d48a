// Tools that the run itself carries out, in runs/: their descriptions for models and the checks of their arguments.
import { z } from 'zod'
import { durationField, idField } from '../kernel/fields.ts'
import type { RunTool } from '../kernel/tool.ts'
import { zodArguments } from './arguments.ts'

export const spawnAgentArguments = z.strictObject({
  agent: z.string().min(1).max(200).describe('The name or the id of the agent.'),
  input: z
    .union([z.string().min(1), z.record(z.string(), z.unknown())])
    .describe('The whole assignment, as text or as an object. The agent sees nothing else of this conversation.'),
  timeout: durationField.min(1).optional().describe('Stop it after this many milliseconds.'),
  max_steps: z.int().min(1).max(1_000_000).optional().describe('Stop it after this many model calls.'),
  resume_run_id: idField
    .optional()
    .describe('A run of that agent that you started and that is paused: it goes on where it stopped, with "input".'),
})
export type SpawnAgentArguments = z.infer<typeof spawnAgentArguments>

export const askHumanArguments = z.strictObject({
  question: z
    .string()
    .min(1)
    .max(20_000)
    .describe('The question, with everything a person needs to answer it without reading this conversation.'),
})

const finishLoopArguments = z.strictObject({
  result: z.unknown().optional().describe('The final result. Left out, your last text is the result.'),
})

const spawnAgentTool: RunTool = {
  kind: 'spawn_agent',
  name: 'spawn_agent',
  description: `Hands a piece of work to another agent and waits for it.

- Use it for work that another agent is made for, or that is separate enough to be described in a few sentences.
- The other agent starts with an empty conversation. Put the goal, all facts it needs and the form of the answer you
  want into "input".
- Several calls in one step run at the same time. Do not give the same work to two agents.
- Answers {run_id, status, summary, error_message}. Only the status "completed" means that the work is done; "paused"
  means that it ran into a limit and "summary" is how far it got. Check the summary before you rely on it.
- A paused run goes on where it stopped when you name its run_id as "resume_run_id". It remembers what it did.`,
  ...zodArguments(spawnAgentArguments),
}

const askHumanTool: RunTool = {
  kind: 'ask_human',
  name: 'ask_human',
  description: `Asks the people in charge and waits for their answer, which may take hours.

- Use it when you need a decision, a permission or a fact that no tool can give you, and a wrong guess would do harm.
- Do not use it for what you can find out yourself, nor to report progress.
- Ask one clear question. Give the options you see and say which one you would take.
- The answer comes back as the result of this call, and you go on from there.`,
  ...zodArguments(askHumanArguments),
}

const finishLoopTool: RunTool = {
  kind: 'finish_loop',
  name: 'finish_loop',
  description: `Ends the loop you are working in, at once and for good.

- Call it when the goal is reached and checked, or when another round would not improve the result.
- Do not call other tools in the same step: nothing after this call is carried out.
- "result" is what the whole run answers with, so make it complete.`,
  ...zodArguments(finishLoopArguments),
}

export const runTools: readonly RunTool[] = [spawnAgentTool, askHumanTool, finishLoopTool]
