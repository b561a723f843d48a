// One agent: what it is, what starts it, what it did, and what it may spend.
import { Badge, Group, Tabs, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import type { Agent } from '../../../../src/kernel/agent.ts'
import { ApiError } from '../../api/client.ts'
import { agentQuery } from '../../api/queries.ts'
import { Unknown } from '../../app/unknown.tsx'
import { PageHead } from '../../parts/page-head.tsx'
import { Panel } from '../../parts/panel.tsx'
import { Failure, Loading, Stale } from '../../parts/states.tsx'
import { Status } from '../../parts/status.tsx'
import { AgentActions } from './agent-actions.tsx'
import { AgentBudget } from './agent-budget.tsx'
import { AgentLog } from './agent-log.tsx'
import { AgentOverview } from './agent-overview.tsx'
import { AgentRuns } from './agent-runs.tsx'
import { AgentTriggers } from './agent-triggers.tsx'
import classes from './agents.module.css'

const ROUTE = '/projects/$projectId/agents/$agentId'
const route = getRouteApi(ROUTE)

const TABS: readonly { tab: string; name: string; panel: (agent: Agent) => ReactNode }[] = [
  { tab: 'overview', name: 'Overview', panel: (agent) => <AgentOverview agent={agent} /> },
  { tab: 'triggers', name: 'Triggers', panel: (agent) => <AgentTriggers agent={agent} /> },
  { tab: 'runs', name: 'Runs', panel: (agent) => <AgentRuns agent={agent} /> },
  { tab: 'budget', name: 'Budget', panel: (agent) => <AgentBudget agent={agent} /> },
  { tab: 'log', name: 'Processing log', panel: (agent) => <AgentLog agent={agent} /> },
]

export function AgentPage() {
  const { projectId, agentId } = route.useParams()
  const agent = useQuery(agentQuery(projectId, agentId))
  if (agent.isPending) return <Loading lines={10} />
  if (agent.error instanceof ApiError && agent.error.status === 404) return <Unknown />
  if (!agent.data)
    return <Failure what="The agent could not be read." error={agent.error} onRetry={() => void agent.refetch()} />
  return (
    <>
      {agent.isError && <Stale onRetry={() => void agent.refetch()} />}
      <Head agent={agent.data} />
      <AgentTabs key={agentId} agent={agent.data} />
    </>
  )
}

function Head({ agent }: { agent: Agent }) {
  const { project_id: projectId, name, status, paused_for, enabled, source } = agent
  return (
    <PageHead
      name={name}
      title={
        <div style={{ minWidth: 0 }}>
          <Link to="/projects/$projectId/agents" params={{ projectId }} className="dim">
            Agents
          </Link>
          <Group gap="sm">
            <Title order={1} style={{ overflowWrap: 'anywhere' }}>
              {name}
            </Title>
            <Status of={status} />
            {paused_for && (
              <span className="dim">{paused_for === 'budget' ? 'its tokens are used up' : 'stopped'}</span>
            )}
            <Badge variant="outline" color="gray" tt="none" fw={500} c={enabled ? 'var(--completed)' : 'var(--dim)'}>
              {enabled ? 'enabled' : 'disabled'}
            </Badge>
            {source === 'app' && (
              <Badge
                variant="outline"
                color="gray"
                tt="none"
                fw={500}
                c="var(--dim)"
                title="Its code is in the app module."
              >
                from the app
              </Badge>
            )}
          </Group>
        </div>
      }
    >
      <AgentActions agent={agent} />
    </PageHead>
  )
}

function AgentTabs({ agent }: { agent: Agent }) {
  const { tab } = route.useSearch()
  const navigate = useNavigate()
  const shown = TABS.find((each) => each.tab === tab) ?? TABS[0]
  const open = (value: string | null): void =>
    void navigate({
      to: ROUTE,
      params: { projectId: agent.project_id, agentId: agent.id },
      search: value === null || value === 'overview' ? {} : { tab: value },
      replace: true,
    })
  if (!shown) return null
  return (
    <Tabs value={shown.tab} onChange={open} keepMounted={false}>
      <Tabs.List px="md" style={{ overflowX: 'auto', flexWrap: 'nowrap' }}>
        {TABS.map((each) => (
          <Tabs.Tab key={each.tab} value={each.tab}>
            {each.name}
          </Tabs.Tab>
        ))}
      </Tabs.List>
      {TABS.map((each) => (
        <Tabs.Panel key={each.tab} value={each.tab} className={classes.body} pt="md">
          <Panel name={each.name}>{each.panel(agent)}</Panel>
        </Tabs.Panel>
      ))}
    </Tabs>
  )
}
