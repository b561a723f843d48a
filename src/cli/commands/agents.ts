import type { AgentAnswer } from '../answers.ts'
import type { Execute } from '../command.ts'
import { exitCodes } from '../exit-codes.ts'
import { statusStyle } from '../statuses.ts'
import { printTable } from '../table.ts'
import { jsonText } from '../visible-text.ts'
import { openWorkplace } from '../workplace.ts'

export const agentsCommand: Execute = async (context) => {
  const workplace = await openWorkplace(context)
  const agents = (await workplace.agents()).toReversed()
  if (context.isJson) context.out.print(jsonText({ items: agents }))
  else {
    printTable(
      context.out,
      [
        { title: 'AGENT', cell: ({ name }) => name, least: 10 },
        { title: 'STATUS', cell: statusCell, least: 8 },
        { title: 'TRIGGER', cell: ({ trigger_type }) => trigger_type, leaveOut: 2 },
        { title: 'MODEL', cell: modelCell, least: 10, leaveOut: 1 },
        { title: 'TOKENS', cell: tokensCell, side: 'right', leaveOut: 3 },
        { title: 'ROLE', cell: ({ role }) => role, least: 10, leaveOut: 4 },
      ],
      agents,
    )
  }
  return exitCodes.done
}

function statusCell({ enabled, status, paused_for }: AgentAnswer) {
  const word = enabled ? status : 'disabled'
  return { text: paused_for === null ? word : `${word} (${paused_for})`, style: statusStyle(word) }
}

const modelCell = ({ model }: AgentAnswer): string => (model ? `${model.provider}/${model.name}` : 'default')

const tokensCell = ({ token_used: used, token_allocation: most }: AgentAnswer): string =>
  most === null ? String(used) : `${used}/${most}`
