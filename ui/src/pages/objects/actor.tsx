// The name of whoever made a version. An agent leads to its page.
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { peopleQuery } from '../../api/objects.ts'
import { agentsQuery } from '../../api/queries.ts'
import { useMe } from '../../app/gate.tsx'

export function Actor({ projectId, type, id }: { projectId: string; type: 'user' | 'agent'; id: string | null }) {
  return type === 'agent' && id !== null ? (
    <AgentName projectId={projectId} id={id} />
  ) : (
    <PersonName projectId={projectId} id={id} />
  )
}

function AgentName({ projectId, id }: { projectId: string; id: string }) {
  const agents = useQuery(agentsQuery(projectId))
  const name = agents.data?.items.find((agent) => agent.id === id)?.name
  // Supervisors and specialists are no stored agents.
  if (name === undefined) return <span>{agents.isPending ? '…' : 'an agent that is not stored any more'}</span>
  return (
    <Link to="/projects/$projectId/agents/$agentId" params={{ projectId, agentId: id }}>
      {name}
    </Link>
  )
}

export function PersonName({ projectId, id }: { projectId: string; id: string | null }) {
  const me = useMe()
  const people = useQuery(peopleQuery(projectId))
  if (id !== null && id === me.id) return <span>you</span>
  const member = people.data?.items.find(({ user_id }) => user_id === id && id !== null)
  if (member) return <span>{member.name ?? member.email}</span>
  return (
    <span>{people.isPending ? '…' : me.instance_admin ? 'the instance admin or a key' : 'a key or the admin'}</span>
  )
}
