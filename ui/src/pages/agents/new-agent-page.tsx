import { Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { agentQuery } from '../../api/queries.ts'
import { useRole } from '../../app/role.ts'
import { PageHead } from '../../parts/page-head.tsx'
import { Empty, Failure, Loading } from '../../parts/states.tsx'
import { definitionOf, firstDefinition } from './agent-draft.ts'
import { AgentForm } from './agent-form.tsx'

const route = getRouteApi('/projects/$projectId/agents/new')

export function NewAgentPage() {
  const { projectId } = route.useParams()
  const { from } = route.useSearch()
  return (
    <>
      <PageHead
        name="New agent"
        title={
          <div>
            <Link to="/projects/$projectId/agents" params={{ projectId }} className="dim">
              Agents
            </Link>
            <Title order={1}>New agent</Title>
          </div>
        }
      />
      <NewForm key={from ?? ''} projectId={projectId} from={from} />
    </>
  )
}

function NewForm({ projectId, from }: { projectId: string; from: string | undefined }) {
  const isAdmin = useRole(projectId) === 'admin'
  const original = useQuery({ ...agentQuery(projectId, from ?? ''), enabled: from !== undefined })
  if (!isAdmin) return <Empty>Only admins of the project make agents.</Empty>
  if (from === undefined) return <AgentForm projectId={projectId} initial={firstDefinition} agent={null} />
  if (original.data) {
    const definition = definitionOf(original.data)
    const initial = { ...definition, name: `${definition.name} copy` }
    return <AgentForm projectId={projectId} initial={initial} agent={null} />
  }
  if (original.isPending) return <Loading lines={8} />
  return (
    <Failure
      what="The agent to copy could not be read."
      error={original.error}
      onRetry={() => void original.refetch()}
    />
  )
}
