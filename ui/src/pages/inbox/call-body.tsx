// A call that waits for a person: the reason, the tool with its arguments, Approve and Reject.
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { TriangleAlert } from 'lucide-react'
import { fitsTool } from '../../../../src/kernel/rights.ts'
import type { Task } from '../../../../src/kernel/task.ts'
import { agentQuery, sameCallsQuery } from '../../api/queries.ts'
import { suggestedCall } from '../../api/task-words.ts'
import { useRole } from '../../app/role.ts'
import { AgentName } from '../../parts/agent-name.tsx'
import { ArgumentTable, ShownValue } from '../../parts/argument-table.tsx'
import { showMarks } from '../../parts/property-diff.ts'
import { Prose } from '../../parts/prose.tsx'
import { Instant } from '../../parts/when.tsx'
import { DecisionButtons } from './decision-buttons.tsx'
import classes from './inbox.module.css'
import type { CardProps } from './inbox-card.tsx'

export function CallBody(props: CardProps & { mayDecide: boolean }) {
  const { projectId, task, isOpen } = props
  const call = suggestedCall(task)
  if (!isOpen || call === null) return null
  const agentId = task.created_by.id ?? ''
  return (
    <>
      {task.reasoning && <Prose>{task.reasoning}</Prose>}
      <div className={classes.change}>
        <p>
          Calls <b className="mono">{showMarks(call.tool)}</b> in the name of{' '}
          <AgentName projectId={projectId} agentId={agentId} runId={task.run_id} />.
        </p>
        <ArgumentTable args={call.args} name={`Arguments of ${call.tool}`} />
      </div>
      <MadeBefore projectId={projectId} task={task} />
      <DecisionButtons {...props} usualReason="The call can no longer be made.">
        <AskingLink projectId={projectId} task={task} tool={call.tool} />
      </DecisionButtons>
    </>
  )
}

/** An approver who did not see an earlier run of the work would have the same effect happen twice. */
function MadeBefore({ projectId, task }: { projectId: string; task: Task }) {
  const { run_id: runId, metadata } = task
  const callId = typeof metadata.call_id === 'string' ? metadata.call_id : ''
  const { data } = useQuery({
    ...sameCallsQuery(projectId, runId ?? '', callId),
    enabled: runId !== null && callId !== '',
  })
  return data?.items.map(({ run_id: by, step, call_id: id, outcome, at, result }) => (
    <div key={`${by} ${step} ${id}`} role="note" className={classes.before}>
      <TriangleAlert size={14} aria-hidden />
      <div>
        {outcome === 'finished' ? (
          <>
            The same call was already made at <Instant at={at} />, result <ShownValue of={result} />.
          </>
        ) : (
          <>
            The same call began at <Instant at={at} />, and nobody knows whether it took effect.
          </>
        )}{' '}
        <Link to="/projects/$projectId/runs/$runId" params={{ projectId, runId: by }}>
          {by === runId ? 'Earlier in this run' : 'Open the run that made it'}
        </Link>
      </div>
    </div>
  ))
}

/** Leads admins to the field that decides whether calls of the tool wait. */
function AskingLink({ projectId, task, tool }: { projectId: string; task: Task; tool: string }) {
  const isAdmin = useRole(projectId) === 'admin'
  const agentId = task.created_by.id ?? ''
  const { data: agent } = useQuery({ ...agentQuery(projectId, agentId), enabled: isAdmin && agentId !== '' })
  if (!agent) return null
  if (agent.source === 'app') return <span className={`${classes.asking} dim`}>Set in the app module</span>
  const isNamed = agent.require_approval.some((pattern) => fitsTool(pattern, tool))
  return (
    <Link
      to="/projects/$projectId/agents/$agentId/edit"
      params={{ projectId, agentId }}
      search={{ field: 'require_approval' }}
      className={classes.asking ?? ''}
    >
      {isNamed ? 'Stop asking' : 'Always ask'}
    </Link>
  )
}
