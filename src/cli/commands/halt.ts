import { projectAnswer } from '../answers.ts'
import type { CommandContext, Execute } from '../command.ts'
import { type ExitCode, exitCodes } from '../exit-codes.ts'
import { jsonText } from '../visible-text.ts'
import { openWorkplace, type Workplace } from '../workplace.ts'

export const haltCommand: Execute = (context) =>
  turn(context, 'halt', ({ command }) => `is halted. Nothing is lost: ${command('muster unhalt')}`)
export const unhaltCommand: Execute = (context) => turn(context, 'unhalt', () => 'continues.')

async function turn(
  context: CommandContext,
  verb: 'halt' | 'unhalt',
  words: (workplace: Workplace) => string,
): Promise<ExitCode> {
  const { client, out, isJson } = context
  const workplace = await openWorkplace(context)
  const project = await client.ask(`/api/projects/${workplace.project.id}/${verb}`, projectAnswer, { method: 'POST' })
  out.print(isJson ? jsonText(project) : `${project.name} ${words(workplace)}`)
  return exitCodes.done
}
