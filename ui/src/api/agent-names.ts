// The names of agents for their ids.
import { useQueries } from '@tanstack/react-query'
import type { Run } from '../../../src/kernel/run.ts'
import { ApiError } from './client.ts'
import { agentQuery, newestAgentsQuery } from './queries.ts'

/** Names change rarely. */
const FRESH_MS = 60_000

export interface NamedAgent {
  projectId: string
  agentId: string
}

/** An agent's name; null if the agent is not stored any more, undefined while that is not known. */
export type AgentNames = (agentId: string) => string | null | undefined

/**
 * One read of a project's newest agents gives most names. Agents that are not among them are read one by one, because
 * a project may have thousands.
 */
export function useAgentNames(wanted: readonly NamedAgent[]): AgentNames {
  const projectIds = [...new Set(wanted.map(({ projectId }) => projectId))]
  const lists = useQueries({ queries: projectIds.map(newestAgentsQuery) })
  const listOf = new Map(projectIds.map((id, at) => [id, lists[at]?.data]))
  const names = new Map(lists.flatMap(({ data }) => data?.items.map(({ id, name }) => [id, name] as const) ?? []))
  const others = wanted.filter(({ projectId, agentId }) => !names.has(agentId) && listOf.get(projectId)?.next_cursor)
  const ids = [...new Map(others.map((each) => [each.agentId, each])).values()]
  const found = useQueries({
    queries: ids.map(({ projectId, agentId }) => ({ ...agentQuery(projectId, agentId), staleTime: FRESH_MS })),
  })
  const oneByOne = new Map(ids.map(({ agentId }, at) => [agentId, found[at]]))
  const areKnown = lists.every(({ data }) => data !== undefined)
  return (agentId) => {
    const known = names.get(agentId)
    const read = oneByOne.get(agentId)
    if (known !== undefined || !areKnown) return known
    // Only an answer says that an agent is gone: a read that failed says nothing.
    return read === undefined || isGone(read.error) ? null : read.data?.name
  }
}

const isGone = (error: unknown): boolean => error instanceof ApiError && error.status === 404

export const useAgentName = (projectId: string, agentId: string | null): string | null | undefined =>
  useAgentNames(agentId === null ? [] : [{ projectId, agentId }])(agentId ?? '')

type OfAgent = Pick<Run, 'project_id' | 'agent_id'>

/** What a list calls the agents of its runs. */
export function useNamesOfRuns(runs: readonly OfAgent[]): (run: OfAgent) => string {
  const nameOf = useAgentNames(
    runs.flatMap(({ project_id: projectId, agent_id: agentId }) => (agentId === null ? [] : [{ projectId, agentId }])),
  )
  return ({ agent_id }) => {
    if (agent_id === null) return 'Supervisor'
    const name = nameOf(agent_id)
    return name ?? (name === null ? 'Deleted agent' : 'Agent')
  }
}
