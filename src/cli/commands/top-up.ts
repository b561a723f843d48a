import { agentAnswer } from '../answers.ts'
import type { Execute } from '../command.ts'
import { tokensText } from '../durations.ts'
import { exitCodes } from '../exit-codes.ts'
import { wholeNumberFrom } from '../read-input.ts'
import { jsonText } from '../visible-text.ts'
import { chooseAgent, openWorkplace } from '../workplace.ts'

export const topUpCommand: Execute = async (context, { args }) => {
  const { client, out, isJson } = context
  const [reference = '', tokens = ''] = args
  const add = wholeNumberFrom(tokens, 'The number of tokens')
  const workplace = await openWorkplace(context)
  const { id } = await chooseAgent(workplace, reference)
  const asked = { method: 'POST', body: { add } }
  const agent = await client.ask(workplace.path(`agents/${id}/budget`), agentAnswer, asked)
  const left = Math.max(0, (agent.token_allocation ?? 0) - agent.token_used)
  out.print(isJson ? jsonText(agent) : `${agent.name} is ${agent.status} and has ${tokensText(left)} left.`)
  return exitCodes.done
}
