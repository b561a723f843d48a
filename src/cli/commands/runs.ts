import { runStatuses } from '../../kernel/run.ts'
import { type RunAnswer, readList, runAnswer } from '../answers.ts'
import type { Execute } from '../command.ts'
import { ageText } from '../durations.ts'
import { exitCodes } from '../exit-codes.ts'
import { waitText } from '../explain-pause.ts'
import { numberOption, textOption } from '../read-input.ts'
import { shortIdsOf } from '../short-id.ts'
import { statusOption } from '../status-option.ts'
import { statusStyle } from '../statuses.ts'
import { printTable } from '../table.ts'
import { jsonText } from '../visible-text.ts'
import { chooseAgent, openWorkplace } from '../workplace.ts'

const USUAL_COUNT = 20

export const runsCommand: Execute = async (context, given) => {
  const { client, out, notes, isJson, now } = context
  const status = statusOption(given, runStatuses)
  const most = numberOption(given, 'limit', '--limit') ?? USUAL_COUNT
  const workplace = await openWorkplace(context)
  const agent = textOption(given, 'agent')
  const agentId = agent === null ? undefined : (await chooseAgent(workplace, agent)).id
  const query = { status, agent_id: agentId }
  const { items, isCut } = await readList(client, workplace.path('runs'), runAnswer, { query, most })
  if (isJson) {
    out.print(jsonText({ items }))
    return exitCodes.done
  }
  const names = new Map<string, string>()
  for (const { id, agent_id } of items) names.set(id, await workplace.agentName(agent_id))
  const short = shortIdsOf(items.map(({ id }) => id))
  printTable(
    out,
    [
      { title: 'RUN', cell: ({ id }) => ({ text: short(id), whole: id }) },
      { title: 'AGENT', cell: ({ id }) => names.get(id) ?? '', least: 8 },
      { title: 'STATUS', cell: statusCell, least: 9 },
      {
        title: 'AGE',
        cell: ({ created_at }) => ({ text: ageText(created_at, now()), whole: created_at }),
        side: 'right',
        leaveOut: 2,
      },
      { title: 'STEPS', cell: ({ step_count }) => String(step_count), side: 'right', leaveOut: 1 },
      { title: 'INPUT', cell: inputCell, least: 10, leaveOut: 3 },
    ],
    items,
  )
  if (items.length === 0) notes.print('No runs.')
  if (isCut && out.isTerminal) notes.print(`There are older runs: --limit ${most * 5}`)
  return exitCodes.done
}

const statusCell = (run: RunAnswer) => {
  const { status, pause_reason, error_code } = run
  const wait = isByPerson(run) ? null : waitText(run)
  if (wait !== null) return { text: wait, style: 'yellow' as const }
  const why = status === 'paused' ? pause_reason : status === 'failed' ? error_code : null
  return { text: why === null ? status : `${status} (${why})`, style: statusStyle(status) }
}

/** The reason of the pause says it already. */
const isByPerson = ({ waiting_for: awaited }: RunAnswer): boolean => awaited === 'person' || awaited === 'tokens'

const LONGEST_INPUT = 200

const inputCell = ({ input }: RunAnswer): string =>
  (typeof input === 'string' ? input : input === null ? '' : jsonText(input)).slice(0, LONGEST_INPUT)
