import { forkAnswer } from '../answers.ts'
import type { CommandContext, Execute } from '../command.ts'
import { exitCodes, misused } from '../exit-codes.ts'
import { findRun } from '../find-run.ts'
import { numberOption, parseInput, readText, textOption } from '../read-input.ts'
import { styled } from '../screen.ts'
import { shortId } from '../short-id.ts'
import { jsonText, visibleLine } from '../visible-text.ts'
import { watchRun } from '../watch-run.ts'
import { chooseAgent, openWorkplace } from '../workplace.ts'

export const forkCommand: Execute = async (context, given) => {
  const { client, out, notes, isJson } = context
  const step = numberOption(given, 'afterStep', '--after-step')
  if (step === null) throw misused('Say after which step the fork begins: muster fork Writer --after-step 2')
  const workplace = await openWorkplace(context)
  const found = await findRun(context, workplace, given.args[0] ?? '')
  if (found.kind === 'flow run') throw misused('A flow run cannot be forked. Fork the run of one of its leaves.')
  const input = textOption(given, 'input')
  const agent = textOption(given, 'agent')
  const run = await client.start(workplace.path(`runs/${found.run.id}/fork`), forkAnswer, {
    after_step: step,
    ...(input === null ? {} : { input: parseInput(await readText(context, input), '--input') }),
    ...(agent === null ? {} : { agent_id: (await chooseAgent(workplace, agent)).id }),
  })
  if (!isJson) tellRepeats(context, run.may_repeat ?? [])
  if (given.options.detach === true) {
    out.print(isJson ? jsonText(run) : run.id)
    return exitCodes.done
  }
  if (!isJson) notes.print(styled('dim', `${await workplace.agentName(run.agent_id)} · ${shortId(run.id)}`))
  return watchRun(context, workplace, run)
}

/** The calls that took effect after that step: the fork does not know them. */
function tellRepeats({ notes }: CommandContext, calls: readonly { tool: string; args: unknown; at: string }[]): void {
  if (calls.length === 0) return
  notes.print(styled('yellow', 'The fork may repeat calls that took effect after that step:'))
  for (const { tool, args, at } of calls) notes.print('  ', visibleLine(`${tool} ${jsonText(args)} ${at}`))
}
