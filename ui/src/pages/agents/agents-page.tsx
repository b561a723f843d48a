import { Button, Group, Switch, Table, Text, Title } from '@mantine/core'
import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { Plus } from 'lucide-react'
import type { Agent } from '../../../../src/kernel/agent.ts'
import type { Run } from '../../../../src/kernel/run.ts'
import { agentPagesQuery, agentPath } from '../../api/agents.ts'
import { patch } from '../../api/client.ts'
import { newestRunsQuery } from '../../api/queries.ts'
import { useRole } from '../../app/role.ts'
import { More } from '../../parts/more.tsx'
import { OpenRow } from '../../parts/open-row.tsx'
import { PageHead } from '../../parts/page-head.tsx'
import { Problem } from '../../parts/problem.tsx'
import { Empty, Failure, Loading, Stale } from '../../parts/states.tsx'
import { Status } from '../../parts/status.tsx'
import { useWrite } from '../../parts/use-write.ts'
import { When } from '../../parts/when.tsx'

const route = getRouteApi('/projects/$projectId/agents')

export function AgentsPage() {
  const { projectId } = route.useParams()
  const isAdmin = useRole(projectId) === 'admin'
  const navigate = useNavigate()
  const list = useInfiniteQuery(agentPagesQuery(projectId))
  const agents = list.data?.pages.flatMap(({ items }) => items) ?? []
  const isEmpty = list.data !== undefined && agents.length === 0
  const newAgent = isAdmin && (
    <Button
      size="xs"
      leftSection={<Plus size={13} aria-hidden />}
      onClick={() => void navigate({ to: '/projects/$projectId/agents/new', params: { projectId } })}
    >
      New agent
    </Button>
  )
  return (
    <>
      <PageHead name="Agents" title={<Title order={1}>Agents</Title>}>
        {!isEmpty && newAgent}
      </PageHead>
      {list.isError && list.data && <Stale onRetry={() => void list.refetch()} />}
      {list.isPending && <Loading lines={8} />}
      {list.isError && !list.data && (
        <Failure what="The agents could not be read." error={list.error} onRetry={() => void list.refetch()} />
      )}
      {isEmpty && (
        <Empty action={newAgent}>
          {isAdmin
            ? 'No agent yet. An agent is a prompt, a model and tools, and something that starts it.'
            : 'No agent yet. An admin of the project makes the first one.'}
        </Empty>
      )}
      {agents.length > 0 && <AgentTable agents={agents} projectId={projectId} isAdmin={isAdmin} />}
      <More list={list} />
    </>
  )
}

const COLUMNS = ['Name', 'Status', 'Trigger', 'Model', 'Mode', 'Enabled', 'Last run']

function AgentTable({ agents, projectId, isAdmin }: { agents: Agent[]; projectId: string; isAdmin: boolean }) {
  const runs = useQuery(newestRunsQuery(projectId))
  const { write, problem } = useWrite({ reads: [['agent', projectId]] })
  // The list of runs is newest first, so that the first run of an agent is its last.
  const lastRuns = new Map((runs.data?.items ?? []).toReversed().map((run) => [run.agent_id, run]))
  const turn = ({ id, name, enabled }: Agent): void =>
    void write(
      () => patch(agentPath(projectId, id), { enabled: !enabled }),
      `${name} is ${enabled ? 'disabled' : 'enabled'}.`,
    )
  return (
    <>
      <Problem text={problem} />
      <Table.ScrollContainer minWidth={760} px={10}>
        <Table highlightOnHover verticalSpacing={5}>
          <Table.Thead>
            <Table.Tr>
              {COLUMNS.map((name) => (
                <Table.Th key={name} className="dim" fw={500}>
                  {name}
                </Table.Th>
              ))}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {agents.map((agent) => (
              <AgentRow
                key={agent.id}
                agent={agent}
                lastRun={lastRuns.get(agent.id)}
                onTurn={isAdmin ? () => turn(agent) : null}
              />
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
    </>
  )
}

function AgentRow({ agent, lastRun, onTurn }: { agent: Agent; lastRun: Run | undefined; onTurn: (() => void) | null }) {
  const { project_id: projectId, id, name, role, model, enabled } = agent
  return (
    <OpenRow>
      <Table.Td maw={280}>
        <Link to="/projects/$projectId/agents/$agentId" params={{ projectId, agentId: id }}>
          {name}
        </Link>
        {role !== '' && (
          <Text size="xs" className="dim cut" title={role}>
            {role}
          </Text>
        )}
      </Table.Td>
      <Table.Td>
        <Status of={agent.status} {...(agent.paused_for && { title: `paused: ${agent.paused_for}` })} />
      </Table.Td>
      <Table.Td>
        {agent.trigger_type}
        {agent.trigger_type === 'schedule' && <span className="dim mono"> {agent.cron_schedule}</span>}
      </Table.Td>
      <Table.Td className={model ? undefined : 'dim'}>{model ? `${model.provider}/${model.name}` : 'default'}</Table.Td>
      <Table.Td>{agent.execution_mode}</Table.Td>
      <Table.Td>
        {onTurn ? (
          <Switch size="xs" aria-label={`${name} is enabled`} checked={enabled} onChange={onTurn} />
        ) : (
          <span className={enabled ? undefined : 'dim'}>{enabled ? 'enabled' : 'disabled'}</span>
        )}
      </Table.Td>
      <Table.Td>
        <Group gap="xs" wrap="nowrap">
          {lastRun ? (
            <Link to="/projects/$projectId/runs/$runId" params={{ projectId, runId: lastRun.id }}>
              <Status of={lastRun.status} />
            </Link>
          ) : null}
          <span className="dim">
            <When at={lastRun?.created_at ?? agent.last_worked_at} />
          </span>
        </Group>
      </Table.Td>
    </OpenRow>
  )
}
