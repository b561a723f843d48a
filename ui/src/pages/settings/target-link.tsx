import { Link } from '@tanstack/react-router'

/** The thing that an entry is about, as a link where it has a page. */
export function TargetLink(props: { projectId: string; target: { type: string | null; id: string | null } }) {
  const { projectId, target } = props
  if (target.type === null || target.id === null) return null
  const id = target.id
  const text = target.type.replaceAll('_', ' ')
  switch (target.type) {
    case 'run':
      return (
        <Link to="/projects/$projectId/runs/$runId" params={{ projectId, runId: id }}>
          {text}
        </Link>
      )
    case 'flow_run':
      return (
        <Link to="/projects/$projectId/flows/$flowRunId" params={{ projectId, flowRunId: id }}>
          {text}
        </Link>
      )
    case 'agent':
      return (
        <Link to="/projects/$projectId/agents/$agentId" params={{ projectId, agentId: id }}>
          {text}
        </Link>
      )
    case 'object':
      return (
        <Link to="/projects/$projectId/objects/$objectId" params={{ projectId, objectId: id }}>
          {text}
        </Link>
      )
    default:
      return (
        <span className="dim" title={id}>
          {text}
        </span>
      )
  }
}
