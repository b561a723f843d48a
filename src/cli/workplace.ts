// The project that a command works in: the one that --project names, else the only one that the key can see.
import { type AgentAnswer, agentAnswer, type ProjectAnswer, projectAnswer, readList } from './answers.ts'
import type { CommandContext } from './command.ts'
import { CommandFailure, exitCodes } from './exit-codes.ts'
import { findOne } from './find-one.ts'
import { shortId } from './short-id.ts'
import { visibleLine } from './visible-text.ts'
import { wordFor } from './word-for.ts'

export interface Workplace {
  project: ProjectAnswer
  /** The path of a part of the project: `path('agents')`. */
  path(rest: string): string
  /** A command as it is printed: one that is pasted reaches this project. */
  command(words: string): string
  /** All agents, read once. */
  agents(): Promise<AgentAnswer[]>
  /** The name of an agent, or the first letters of its id if it is unknown or deleted. */
  agentName(id: string | null): Promise<string>
}

const MOST_PROJECTS = 2_000
const MOST_AGENTS = 5_000

export async function openWorkplace({ client, projectReference }: CommandContext): Promise<Workplace> {
  const { items } = await readList(client, '/api/projects', projectAnswer, { most: MOST_PROJECTS })
  const project = chooseProject(projectReference, items)
  const isNamed = projectReference !== null || items.length > 1
  const path = (rest: string): string => `/api/projects/${project.id}/${rest}`
  let agents: Promise<AgentAnswer[]> | null = null
  const readAgents = (): Promise<AgentAnswer[]> => {
    agents ??= readList(client, path('agents'), agentAnswer, { most: MOST_AGENTS }).then((list) => list.items)
    return agents
  }
  return {
    project,
    path,
    command: (words) => (isNamed ? withProject(words, project) : words),
    agents: readAgents,
    agentName: async (id) => {
      if (id === null) return 'supervisor'
      return (await readAgents()).find((agent) => agent.id === id)?.name ?? shortId(id)
    },
  }
}

export const withProject = (command: string, project: { id: string; name: string }): string =>
  `${command} --project ${wordFor(project)}`

export function chooseProject(reference: string | null, projects: readonly ProjectAnswer[]): ProjectAnswer {
  const candidates = projects.map((project) => ({
    thing: project,
    id: project.id,
    names: [project.name],
    label: project.name,
  }))
  if (reference !== null) return findOne('project', reference, candidates)
  const [first, second] = projects
  if (first && !second) return first
  const lines = projects.slice(0, 20).map(({ name }) => visibleLine(name))
  const message = first
    ? `There are ${projects.length} projects. Name one with --project:`
    : 'There is no project yet. Sign in and make one, or start Muster with the demo.'
  throw new CommandFailure(exitCodes.misused, message, { lines, code: first ? 'AMBIGUOUS' : 'NOT_FOUND' })
}

export async function chooseAgent(workplace: Workplace, reference: string): Promise<AgentAnswer> {
  return findOne('agent', reference, agentCandidates(await workplace.agents()))
}

export const agentCandidates = (agents: readonly AgentAnswer[]) =>
  agents.map((agent) => ({ thing: agent, id: agent.id, names: [agent.name], label: agent.name }))
