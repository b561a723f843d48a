import { type FlowAnswer, flowRunAnswer, pageAnswer, type TemplateAnswer, templateAnswer } from '../answers.ts'
import type { CommandContext, Execute, Given } from '../command.ts'
import { exitCodes, misused } from '../exit-codes.ts'
import { findOne, type Nameable } from '../find-one.ts'
import { flowCandidates, readFlows } from '../find-run.ts'
import { numberOption, parseInput, readText, textOption } from '../read-input.ts'
import { styled } from '../screen.ts'
import { shortId } from '../short-id.ts'
import { jsonText } from '../visible-text.ts'
import { watchFlowRun } from '../watch-flow-run.ts'
import { openWorkplace, type Workplace } from '../workplace.ts'

export const flowRunCommand: Execute = async (context, given) => {
  const { client, out, notes, isJson } = context
  const workplace = await openWorkplace(context)
  const chosen = await chooseFlow(context, workplace, given.args[0] ?? '')
  const input = await readFlowInput(context, given, chosen)
  const workers = numberOption(given, 'workers', '--workers')
  const timeout = numberOption(given, 'timeout', '--timeout')
  const run = await client.start(workplace.path('flow-runs'), flowRunAnswer, {
    ...(chosen.kind === 'flow' ? { flow_id: chosen.flow.id } : { template: chosen.template.name }),
    ...(input === undefined ? {} : { input }),
    ...(workers === null ? {} : { workers }),
    ...(timeout === null ? {} : { timeout }),
  })
  if (given.options.detach === true) {
    out.print(isJson ? jsonText(run) : run.id)
    return exitCodes.done
  }
  const name = chosen.kind === 'flow' ? chosen.flow.name : chosen.template.name
  if (!isJson) notes.print(styled('dim', `${name} · ${shortId(run.id)}`))
  return watchFlowRun(context, workplace, run)
}

type Chosen = { kind: 'flow'; flow: FlowAnswer } | { kind: 'template'; template: TemplateAnswer }

/** A name that a stored flow and a template share means the stored flow. */
async function chooseFlow({ client }: CommandContext, workplace: Workplace, reference: string): Promise<Chosen> {
  const [flows, { items }] = await Promise.all([
    readFlows(client, workplace),
    client.ask(workplace.path('flow-templates'), pageAnswer(templateAnswer)),
  ])
  const stored = flowCandidates(flows).map(({ thing: flow, ...rest }) => ({
    ...rest,
    thing: { kind: 'flow', flow } as const,
  }))
  const names = new Set(flows.map(({ name }) => name))
  const templates = items
    .filter(({ name }) => !names.has(name))
    .map((template) => {
      const { name } = template
      return { id: name, names: [name], label: name, thing: { kind: 'template', template } as const }
    })
  return findOne<Chosen>('flow', reference, [...stored, ...templates] satisfies Nameable<Chosen>[])
}

async function readFlowInput(context: CommandContext, given: Given, chosen: Chosen): Promise<unknown> {
  const text = textOption(given, 'input')
  if (given.options.example !== true) {
    return text === null ? undefined : parseInput(await readText(context, text), '--input')
  }
  if (text !== null) throw misused('--example and --input exclude each other.')
  if (chosen.kind === 'flow') throw misused('Only a template has an example. Give the input with --input.')
  return chosen.template.example.input
}
