import { type RunAnswer, readList, runAnswer } from '../answers.ts'
import type { CommandContext, Execute } from '../command.ts'
import { CommandFailure, exitCodes } from '../exit-codes.ts'
import { type FoundRun, findRuns } from '../find-run.ts'
import { shortId } from '../short-id.ts'
import { jsonText } from '../visible-text.ts'
import { hasFlowEnded } from '../watch-flow-run.ts'
import { openWorkplace, type Workplace } from '../workplace.ts'

const MAX_LEAVES = 10_000

export const tryNowCommand: Execute = async (context, { args }) => {
  const { client, out, isJson } = context
  const workplace = await openWorkplace(context)
  const found = await findRuns(context, workplace, args[0] ?? '', {
    fits: ({ kind, run }) => (kind === 'run' ? waitsForProvider(run) : !hasFlowEnded(run)),
    words: 'waits for a provider',
  })
  const ids = new Set((await Promise.all(found.map((each) => waitingIn(context, workplace, each)))).flat())
  if (ids.size === 0) throw nothingWaits(args[0] ?? '')
  const runs: RunAnswer[] = []
  for (const id of ids) {
    runs.push(await client.ask(workplace.path(`runs/${id}/try-now`), runAnswer, { method: 'POST' }))
    if (!isJson) out.print(`${shortId(id)} tries its provider again now.`)
  }
  const [only] = runs
  if (isJson) out.print(jsonText(only && found[0]?.kind === 'run' && runs.length === 1 ? only : { items: runs }))
  return exitCodes.done
}

const waitsForProvider = ({ waiting_for: awaited }: RunAnswer): boolean => (awaited ?? '').startsWith('provider ')

/** The run itself, or the runs of the flow run's leaves. */
async function waitingIn({ client }: CommandContext, { path }: Workplace, { kind, run }: FoundRun): Promise<string[]> {
  if (kind === 'run') return [run.id]
  const query = { flow_run_id: run.id, pause_reason: 'unavailable' }
  const { items } = await readList(client, path('runs'), runAnswer, { query, most: MAX_LEAVES })
  return items.filter(waitsForProvider).map(({ id }) => id)
}

function nothingWaits(reference: string): CommandFailure {
  const message =
    `No run of a leaf of "${reference}" waits for a provider. ` +
    'A function that asks a model (muster.ask) has no run: it tries again by itself.'
  return new CommandFailure(exitCodes.refused, message, { code: 'CONFLICT' })
}
