// How the whole organisation stands, and what it has to do.
import { Stack, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import type { OrgAgent } from '../../../../src/kernel/org.ts'
import { healthQuery } from '../../api/organisation.ts'
import { useRole } from '../../app/role.ts'
import { showMarks } from '../../parts/property-diff.ts'
import { Failure } from '../../parts/states.tsx'
import { Status } from '../../parts/status.tsx'
import { useNow, When } from '../../parts/when.tsx'
import { WholeControls } from './controls.tsx'
import classes from './organisation.module.css'
import { TaskList } from './task-list.tsx'

interface Props {
  projectId: string
  agents: readonly OrgAgent[]
  onTask: (taskId: string) => void
}

export function WholePanel({ projectId, agents, onTask }: Props) {
  const isAdmin = useRole(projectId) === 'admin'
  return (
    <Stack gap="lg">
      <Title order={2}>Whole organisation</Title>
      {isAdmin && <WholeControls projectId={projectId} agents={agents} />}
      <Health projectId={projectId} agents={agents} />
      <Helpless projectId={projectId} agents={agents} />
      <section aria-label="Tasks">
        <Title order={3} mb="xs">
          Tasks
        </Title>
        <TaskList projectId={projectId} agentId={null} onTask={onTask} />
      </section>
    </Stack>
  )
}

/** Agents are served in rounds. A round that is long ago means that no worker is alive. */
const LATE_MS = 120_000

function Health({ projectId, agents }: Omit<Props, 'onTask'>) {
  const health = useQuery(healthQuery(projectId))
  const now = useNow()
  if (health.isError && !health.data) {
    return <Failure what="The health could not be read." error={health.error} onRetry={() => void health.refetch()} />
  }
  const last = health.data?.[0]?.heartbeat_at ?? null
  const isLate = last !== null && now - Date.parse(last) > LATE_MS
  const count = (status: OrgAgent['status']): number => agents.filter((agent) => agent.status === status).length
  return (
    <section aria-label="Health">
      <dl className={classes.figures}>
        <Figure name="Agents">{agents.length}</Figure>
        <Figure name="Take up tasks">{health.data?.filter(({ running }) => running).length ?? '–'}</Figure>
        <Figure name="Open tasks">{agents.reduce((sum, { load }) => sum + load, 0)}</Figure>
        {(['active', 'bored', 'stuck', 'paused'] as const).map((status) => (
          <Figure key={status} name={<Status of={status} />}>
            {count(status)}
          </Figure>
        ))}
        <Figure name="Last round">
          <When at={last} />
        </Figure>
      </dl>
      {isLate && <p className={classes.amber}>No worker has served the organisation for a while. Is one running?</p>}
    </section>
  )
}

function Figure({ name, children }: { name: ReactNode; children: ReactNode }) {
  return (
    <div>
      <dt className="dim">{name}</dt>
      <dd className="number">{children}</dd>
    </div>
  )
}

const MOST_NAMED = 20

/** The agents that cannot go on by themselves. */
function Helpless({ projectId, agents }: Omit<Props, 'onTask'>) {
  const all = agents.filter(({ status, paused_for }) => status === 'stuck' || paused_for === 'budget')
  if (all.length === 0) return null
  return (
    <section aria-label="Agents that need help">
      <Title order={3} mb="xs">
        Agents that need help
      </Title>
      <ul className={classes.list}>
        {all.slice(0, MOST_NAMED).map(({ id, name, status }) => (
          <li key={id} className={classes.line}>
            <Status of={status} />
            <Link to="/projects/$projectId/organisation" params={{ projectId }} search={{ agent: id }}>
              {showMarks(name)}
            </Link>
            <span className="dim">{status === 'stuck' ? 'a task failed too often' : 'its tokens are used up'}</span>
          </li>
        ))}
      </ul>
      {all.length > MOST_NAMED && <p className="dim">and {all.length - MOST_NAMED} more</p>}
    </section>
  )
}
