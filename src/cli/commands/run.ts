import { runAnswer } from '../answers.ts'
import type { CommandContext, Execute, Given } from '../command.ts'
import { exitCodes, misused } from '../exit-codes.ts'
import { numberOption, parseInput, readText, textOption } from '../read-input.ts'
import { styled } from '../screen.ts'
import { shortId } from '../short-id.ts'
import { jsonText } from '../visible-text.ts'
import { watchRun } from '../watch-run.ts'
import { chooseAgent, openWorkplace } from '../workplace.ts'

export const runCommand: Execute = async (context, given) => {
  const { client, out, notes, isJson } = context
  const input = await readRunInput(context, given)
  const workplace = await openWorkplace(context)
  const agent = await chooseAgent(workplace, given.args[0] ?? '')
  const run = await client.start(workplace.path(`agents/${agent.id}/trigger`), runAnswer, {
    input,
    ...limitsOf(given),
  })
  if (given.options.detach === true) {
    out.print(isJson ? jsonText(run) : run.id)
    return exitCodes.done
  }
  if (!isJson) notes.print(styled('dim', `${agent.name} · ${shortId(run.id)}`))
  return watchRun(context, workplace, run)
}

/** The text of the argument; or of --input, which may be an object. */
async function readRunInput(context: CommandContext, given: Given): Promise<unknown> {
  const text = given.args[1]
  const option = textOption(given, 'input')
  if ((text === undefined) === (option === null)) {
    throw misused('Give the task as a text, or with --input: muster run Writer "two lines about rain"')
  }
  if (text !== undefined) return text === '-' ? readText(context, text) : text
  const input = parseInput(await readText(context, option ?? ''), '--input')
  if (Array.isArray(input)) throw misused('--input takes an object or a text, not a list.')
  return input
}

export function limitsOf(given: Given): { max_steps?: number; timeout?: number } {
  const maxSteps = numberOption(given, 'maxSteps', '--max-steps')
  const timeout = numberOption(given, 'timeout', '--timeout')
  return { ...(maxSteps === null ? {} : { max_steps: maxSteps }), ...(timeout === null ? {} : { timeout }) }
}
