// The name of whoever made a version. An agent leads to its page.

import { PersonName } from '../../app/person-name.tsx'
import { AgentName } from '../../parts/agent-name.tsx'

export function Actor({ projectId, type, id }: { projectId: string; type: 'user' | 'agent'; id: string | null }) {
  return type === 'agent' && id !== null ? (
    <AgentName projectId={projectId} agentId={id} />
  ) : (
    <PersonName projectId={projectId} id={id} />
  )
}
