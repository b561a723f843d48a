import { Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { useState } from 'react'
import type { Agent } from '../../../../src/kernel/agent.ts'
import { ApiError } from '../../api/client.ts'
import { agentQuery } from '../../api/queries.ts'
import { useRole } from '../../app/role.ts'
import { Unknown } from '../../app/unknown.tsx'
import { PageHead } from '../../parts/page-head.tsx'
import { Empty, Failure, Loading } from '../../parts/states.tsx'
import { definitionOf } from './agent-draft.ts'
import { AgentForm } from './agent-form.tsx'

const route = getRouteApi('/projects/$projectId/agents/$agentId/edit')

export function EditAgentPage() {
  const { projectId, agentId } = route.useParams()
  const { field } = route.useSearch()
  const isAdmin = useRole(projectId) === 'admin'
  const agent = useQuery(agentQuery(projectId, agentId))
  if (agent.isPending) return <Loading lines={10} />
  if (agent.error instanceof ApiError && agent.error.status === 404) return <Unknown />
  if (!agent.data)
    return <Failure what="The agent could not be read." error={agent.error} onRetry={() => void agent.refetch()} />
  const { name } = agent.data
  return (
    <>
      <PageHead
        name={`Edit ${name}`}
        title={
          <div>
            <Link to="/projects/$projectId/agents/$agentId" params={{ projectId, agentId }} className="dim">
              {name}
            </Link>
            <Title order={1}>Edit {name}</Title>
          </div>
        }
      />
      {isAdmin ? (
        <EditForm key={agentId} agent={agent.data} field={field} />
      ) : (
        <Empty>Only admins of the project edit agents.</Empty>
      )}
    </>
  )
}

/** Typed text stays when somebody else changes the agent: only the fields changed here are sent. */
function EditForm({ agent, field }: { agent: Agent; field: string | undefined }) {
  const [loaded] = useState(agent)
  return <AgentForm projectId={loaded.project_id} initial={definitionOf(loaded)} agent={loaded} field={field} />
}
