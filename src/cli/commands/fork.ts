import { type EffectAnswer, effectAnswer, forkAnswer, pageAnswer } from '../answers.ts'
import type { CommandContext, Execute } from '../command.ts'
import { exitCodes, misused } from '../exit-codes.ts'
import { findRun } from '../find-run.ts'
import { numberOption, parseInput, readText, textOption } from '../read-input.ts'
import { styled } from '../screen.ts'
import { shortId } from '../short-id.ts'
import { jsonText, visibleLine } from '../visible-text.ts'
import { watchRun } from '../watch-run.ts'
import { chooseAgent, openWorkplace, type Workplace } from '../workplace.ts'

export const forkCommand: Execute = async (context, given) => {
  const { client, out, notes, isJson } = context
  const step = numberOption(given, 'afterStep', '--after-step', 0)
  if (step === null) throw misused('Say after which step the fork begins: muster fork Writer --after-step 2')
  const workplace = await openWorkplace(context)
  const found = await findRun(context, workplace, given.args[0] ?? '')
  if (found.kind === 'flow run') throw misused('A flow run cannot be forked. Fork the run of one of its leaves.')
  const input = textOption(given, 'input')
  const agent = textOption(given, 'agent')
  const body = {
    after_step: step,
    ...(input === null ? {} : { input: parseInput(await readText(context, input), '--input') }),
    ...(agent === null ? {} : { agent_id: (await chooseAgent(workplace, agent)).id }),
  }
  if (given.options.yes !== true && !(await mayRepeat(context, workplace, found.run.id, step))) {
    notes.print('No fork was started.')
    return exitCodes.failed
  }
  const run = await client.start(workplace.path(`runs/${found.run.id}/fork`), forkAnswer, body)
  if (given.options.detach === true) {
    out.print(isJson ? jsonText(run) : run.id)
    return exitCodes.done
  }
  if (!isJson) notes.print(styled('dim', `${await workplace.agentName(run.agent_id)} · ${shortId(run.id)}`))
  return watchRun(context, workplace, run)
}

/** True if the fork repeats no call, or if the person at the terminal allows it. */
async function mayRepeat(context: CommandContext, workplace: Workplace, runId: string, step: number): Promise<boolean> {
  const { client, notes, isJson, askYesNo } = context
  const path = workplace.path(`runs/${runId}/effects?after_step=${step}`)
  const { items: calls } = await client.ask(path, pageAnswer(effectAnswer))
  if (calls.length === 0) return true
  const may = `The fork may make ${calls.length === 1 ? 'this call' : `these ${calls.length} calls`} a second time`
  const lines = calls.map(lineOf)
  if (askYesNo === null || isJson) throw misused(`${may}. Add --yes to start it:`, lines)
  notes.print(styled('yellow', `${may}:`))
  for (const line of lines) notes.print('  ', line)
  return askYesNo('Start the fork? [y/N] ')
}

const lineOf = ({ tool, args, outcome, at }: EffectAnswer): string =>
  visibleLine(`${tool} ${jsonText(args)} ${at}${outcome === 'unknown' ? ' (outcome unknown)' : ''}`)
