// `@Writer` in place of an id, in a path, a query or a body of `muster api`.
import { z } from 'zod'
import { readList } from './answers.ts'
import type { CommandContext } from './command.ts'
import { misused } from './exit-codes.ts'
import { findOne } from './find-one.ts'
import { findRun, flowCandidates, readFlows } from './find-run.ts'
import { findTask } from './open-tasks.ts'
import { chooseAgent, type Workplace } from './workplace.ts'

type Noun = 'agent' | 'eval' | 'flow' | 'run' | 'task'

/** The parts of a path behind which an id stands. */
const OF_PATH: Readonly<Record<string, Noun>> = {
  agents: 'agent',
  evals: 'eval',
  flows: 'flow',
  runs: 'run',
  'flow-runs': 'run',
  tasks: 'task',
}

/** The fields of queries and bodies that take ids. No id begins with @, so nothing else is replaced. */
const OF_FIELD: Readonly<Record<string, Noun>> = {
  agent_id: 'agent',
  assigned_to: 'agent',
  senior_id: 'agent',
  eval_id: 'eval',
  flow_id: 'flow',
  run_id: 'run',
  flow_run_id: 'run',
  parent_run_id: 'run',
  resume_run_id: 'run',
  task_id: 'task',
  parent_task_id: 'task',
}

export interface NamedIds {
  inPath(path: string): Promise<string>
  inBody(value: unknown): Promise<unknown>
}

export function createNamedIds(context: CommandContext, workplace: Workplace): NamedIds {
  const idOf = async (noun: Noun, name: string): Promise<string> => {
    if (noun === 'agent') return (await chooseAgent(workplace, name)).id
    if (noun === 'run') return (await findRun(context, workplace, name)).run.id
    if (noun === 'task') return (await findTask(context, workplace, name, ['escalation', 'suggestion', 'work'])).id
    if (noun === 'eval') return findOne('eval', name, await readEvals(context, workplace)).id
    return findOne('flow', name, flowCandidates(await readFlows(context.client, workplace))).id
  }

  async function inBody(value: unknown, field = ''): Promise<unknown> {
    const noun = OF_FIELD[field]
    if (typeof value === 'string') return noun && value.startsWith('@') ? idOf(noun, value.slice(1)) : value
    if (Array.isArray(value)) return Promise.all(value.map((each) => inBody(each)))
    if (typeof value !== 'object' || value === null) return value
    const entries = Object.entries(value).map(async ([name, each]) => [name, await inBody(each, name)] as const)
    return Object.fromEntries(await Promise.all(entries))
  }

  return {
    inBody,
    async inPath(path) {
      const [route = '', query] = path.split(/\?(.*)/s)
      const parts = route.split('/')
      for (const [place, part] of parts.entries()) {
        if (!part.startsWith('@')) continue
        const noun = OF_PATH[parts[place - 1] ?? '']
        if (!noun) throw misused(`@ stands for a name behind ${Object.keys(OF_PATH).join('/, ')}/.`)
        parts[place] = await idOf(noun, part.slice(1))
      }
      if (query === undefined) return parts.join('/')
      const search = new URLSearchParams(query)
      for (const [name, value] of [...search]) {
        const noun = OF_FIELD[name]
        if (noun && value.startsWith('@')) search.set(name, await idOf(noun, value.slice(1)))
      }
      return `${parts.join('/')}?${search}`
    },
  }
}

const evalAnswer = z.looseObject({ id: z.string(), name: z.string() })
const MOST_EVALS = 1_000

async function readEvals({ client }: CommandContext, { path }: Workplace) {
  const { items } = await readList(client, path('evals'), evalAnswer, { most: MOST_EVALS })
  return items.map((thing) => ({ thing, id: thing.id, names: [thing.name], label: thing.name }))
}
