import { pageAnswer, templateAnswer } from '../answers.ts'
import type { Execute } from '../command.ts'
import { exitCodes } from '../exit-codes.ts'
import { readFlows } from '../find-run.ts'
import { printTable } from '../table.ts'
import { jsonText } from '../visible-text.ts'
import { openWorkplace } from '../workplace.ts'

interface ListedFlow {
  name: string
  kind: string
  pattern: string
  description: string
}

export const flowsCommand: Execute = async (context) => {
  const { client, out, isJson } = context
  const workplace = await openWorkplace(context)
  const [flows, { items: templates }] = await Promise.all([
    readFlows(client, workplace),
    client.ask(workplace.path('flow-templates'), pageAnswer(templateAnswer)),
  ])
  if (isJson) {
    out.print(jsonText({ flows, templates }))
    return exitCodes.done
  }
  const listed: ListedFlow[] = [
    ...flows.map(({ name, enabled, root }) => ({
      name,
      kind: enabled ? 'flow' : 'disabled',
      pattern: root.type,
      description: '',
    })),
    ...templates.map(({ name, pattern, description }) => ({ name, kind: 'template', pattern, description })),
  ]
  printTable(
    out,
    [
      { title: 'FLOW', cell: ({ name }) => name, least: 12 },
      { title: 'KIND', cell: ({ kind }) => kind },
      { title: 'PATTERN', cell: ({ pattern }) => pattern, leaveOut: 1 },
      { title: 'DESCRIPTION', cell: ({ description }) => description, least: 12, leaveOut: 2 },
    ],
    listed,
  )
  return exitCodes.done
}
