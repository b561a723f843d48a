import { runAnswer } from '../answers.ts'
import type { Execute } from '../command.ts'
import { misused } from '../exit-codes.ts'
import { findRun } from '../find-run.ts'
import { parseInput, readText, textOption } from '../read-input.ts'
import { styled } from '../screen.ts'
import { shortId } from '../short-id.ts'
import { watchRun } from '../watch-run.ts'
import { openWorkplace } from '../workplace.ts'
import { limitsOf } from './run.ts'

export const resumeCommand: Execute = async (context, given) => {
  const workplace = await openWorkplace(context)
  const outcome = textOption(given, 'outcome')
  if (outcome !== null && outcome !== 'done' && outcome !== 'not_done') {
    throw misused(`--outcome takes done or not_done, not "${outcome}".`)
  }
  const input = textOption(given, 'input')
  const result = textOption(given, 'result')
  const callId = textOption(given, 'call')
  const body = {
    ...limitsOf(given),
    ...(input === null ? {} : { input: parseInput(await readText(context, input), '--input') }),
    ...(outcome === null ? {} : { outcome }),
    ...(callId === null ? {} : { call_id: callId }),
    ...(result === null ? {} : { result: parseInput(await readText(context, result), '--result') }),
  }
  const found = await findRun(context, workplace, given.args[0] ?? '', {
    fits: ({ kind, run }) => kind === 'run' && run.status === 'paused',
    words: 'is paused',
  })
  if (found.kind === 'flow run') throw misused('A flow run cannot be resumed: its leaves go on by themselves.')
  const run = await context.client.start(workplace.path(`runs/${found.run.id}/resume`), runAnswer, body)
  const name = await workplace.agentName(run.agent_id)
  if (!context.isJson) context.notes.print(styled('dim', `${name} · ${shortId(run.id)}`))
  return watchRun(context, workplace, run)
}
