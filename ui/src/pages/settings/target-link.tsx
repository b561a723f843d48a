import { Link, type LinkProps } from '@tanstack/react-router'
import type { AuditEntry } from '../../../../src/kernel/access.ts'
import { oneLine } from '../../parts/figures.ts'
import { showMarks } from '../../parts/property-diff.ts'

const LONGEST_NAME = 80

/** The thing that an entry is about, by its name, as a link where it has a page and still exists. */
export function TargetLink({ projectId, of }: { projectId: string; of: AuditEntry }) {
  const { target, target_name, target_exists } = of
  if (target.type === null || (target.id === null && target_name === null)) return null
  const kind = target.type.replaceAll('_', ' ')
  const name = target_name === null ? null : showMarks(oneLine(target_name, LONGEST_NAME))
  const address = target_exists && target.id !== null ? addressOf(projectId, target.type, target.id) : null
  return (
    <span title={target.id ?? ''} style={{ overflowWrap: 'anywhere' }}>
      <span className="dim">{kind} </span>
      {address ? <Link {...address}>{name ?? 'without a name'}</Link> : name}
      {target_exists === false && <span className="dim"> (deleted)</span>}
    </span>
  )
}

function addressOf(projectId: string, type: string, id: string): LinkProps | null {
  switch (type) {
    case 'run':
      return { to: '/projects/$projectId/runs/$runId', params: { projectId, runId: id } }
    case 'flow':
      return { to: '/projects/$projectId/flows/definitions/$flowId', params: { projectId, flowId: id } }
    case 'flow_run':
      return { to: '/projects/$projectId/flows/$flowRunId', params: { projectId, flowRunId: id } }
    case 'agent':
      return { to: '/projects/$projectId/agents/$agentId', params: { projectId, agentId: id } }
    case 'object':
      return { to: '/projects/$projectId/objects/$objectId', params: { projectId, objectId: id } }
    case 'eval':
      return { to: '/projects/$projectId/evals/$evalId', params: { projectId, evalId: id } }
    default:
      return null
  }
}
