// The name of an agent for its id. Each agent is read once, because a project may have thousands of them.
import { queryOptions, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { Agent } from '../../../src/kernel/agent.ts'
import { get } from '../api/client.ts'
import { projectPath, runQuery } from '../api/queries.ts'
import { showMarks } from './property-diff.ts'

const FRESH_MS = 60_000

export const agentByIdQuery = (projectId: string, agentId: string) =>
  queryOptions({
    queryKey: ['agent', projectId, agentId],
    queryFn: () => get<Agent>(projectPath(projectId, `/agents/${agentId}`)),
    staleTime: FRESH_MS,
  })

interface Props {
  projectId: string
  agentId: string
  /** The run in which the agent acted: supervisors and specialists are no stored agents, and their runs name them. */
  runId?: string | null
}

export function AgentName({ projectId, agentId, runId = null }: Props) {
  const agent = useQuery(agentByIdQuery(projectId, agentId))
  const run = useQuery({ ...runQuery(projectId, runId ?? ''), enabled: agent.isError && runId !== null })
  if (agent.data) {
    return (
      <Link to="/projects/$projectId/agents/$agentId" params={{ projectId, agentId }}>
        {showMarks(agent.data.name)}
      </Link>
    )
  }
  if (agent.isPending) return <span className="dim">an agent</span>
  return run.data?.agent_id === null ? (run.data.trigger.node ?? 'the supervisor') : 'a deleted agent'
}
