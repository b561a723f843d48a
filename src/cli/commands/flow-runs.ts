import { flowRunStatuses } from '../../kernel/flow-run.ts'
import { type FlowRunAnswer, flowRunAnswer, readList } from '../answers.ts'
import type { Execute } from '../command.ts'
import { ageText } from '../durations.ts'
import { exitCodes } from '../exit-codes.ts'
import { findOne } from '../find-one.ts'
import { flowCandidates, readFlows } from '../find-run.ts'
import { numberOption, textOption } from '../read-input.ts'
import { shortIdsOf } from '../short-id.ts'
import { statusOption } from '../status-option.ts'
import { statusStyle } from '../statuses.ts'
import { printTable } from '../table.ts'
import { jsonText } from '../visible-text.ts'
import { openWorkplace } from '../workplace.ts'

const USUAL_COUNT = 20

export const flowRunsCommand: Execute = async (context, given) => {
  const { client, out, notes, isJson, now } = context
  const status = statusOption(given, flowRunStatuses)
  const most = numberOption(given, 'limit', '--limit') ?? USUAL_COUNT
  const workplace = await openWorkplace(context)
  const flows = await readFlows(client, workplace)
  const flow = textOption(given, 'flow')
  const flowId = flow === null ? undefined : findOne('flow', flow, flowCandidates(flows)).id
  const query = { status, flow_id: flowId }
  const { items } = await readList(client, workplace.path('flow-runs'), flowRunAnswer, { query, most })
  if (isJson) {
    out.print(jsonText({ items }))
    return exitCodes.done
  }
  const names = new Map(flows.map(({ id, name }) => [id, name]))
  const short = shortIdsOf(items.map(({ id }) => id))
  printTable(
    out,
    [
      { title: 'FLOW RUN', cell: ({ id }) => ({ text: short(id), whole: id }) },
      { title: 'FLOW', cell: ({ flow_id, pattern }) => names.get(flow_id ?? '') ?? pattern, least: 8 },
      { title: 'STATUS', cell: ({ status: word }) => ({ text: word, style: statusStyle(word) }) },
      { title: 'DONE', cell: doneCell, side: 'right', leaveOut: 2 },
      {
        title: 'AGE',
        cell: ({ created_at }) => ({ text: ageText(created_at, now()), whole: created_at }),
        side: 'right',
        leaveOut: 1,
      },
    ],
    items,
  )
  if (items.length === 0) notes.print('No flow runs.')
  return exitCodes.done
}

const doneCell = ({ progress: { completed, total } }: FlowRunAnswer): string => `${completed}/${total}`
