// The name of an agent, which leads to its page.
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useAgentName } from '../api/agent-names.ts'
import { runQuery } from '../api/queries.ts'
import { showMarks } from './property-diff.ts'

interface Props {
  projectId: string
  agentId: string
  /** The run in which the agent acted: supervisors and specialists are no stored agents, and their runs name them. */
  runId?: string | null
}

export function AgentName({ projectId, agentId, runId = null }: Props) {
  const name = useAgentName(projectId, agentId)
  const run = useQuery({ ...runQuery(projectId, runId ?? ''), enabled: name === null && runId !== null })
  if (name === undefined) return <span className="dim">an agent</span>
  if (name === null)
    return run.data?.agent_id === null ? (run.data.trigger.node ?? 'the supervisor') : 'a deleted agent'
  return (
    <Link to="/projects/$projectId/agents/$agentId" params={{ projectId, agentId }}>
      {showMarks(name)}
    </Link>
  )
}
