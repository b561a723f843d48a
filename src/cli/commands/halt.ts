import { projectAnswer } from '../answers.ts'
import type { CommandContext, Execute } from '../command.ts'
import { type ExitCode, exitCodes } from '../exit-codes.ts'
import { jsonText } from '../visible-text.ts'
import { openWorkplace } from '../workplace.ts'

export const haltCommand: Execute = (context) => turn(context, 'halt', 'is halted. Nothing is lost: muster unhalt')
export const unhaltCommand: Execute = (context) => turn(context, 'unhalt', 'goes on.')

async function turn(context: CommandContext, verb: 'halt' | 'unhalt', words: string): Promise<ExitCode> {
  const { client, out, isJson } = context
  const workplace = await openWorkplace(context)
  const project = await client.ask(`/api/projects/${workplace.project.id}/${verb}`, projectAnswer, { method: 'POST' })
  out.print(isJson ? jsonText(project) : `${project.name} ${words}`)
  return exitCodes.done
}
