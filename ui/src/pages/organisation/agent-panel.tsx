// One agent: how it stands, its budget, its tasks and its messages.

import { Button, Group, NumberInput, Stack, Tabs, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { X } from 'lucide-react'
import { useState } from 'react'
import type { OrgAgent } from '../../../../src/kernel/org.ts'
import { post } from '../../api/client.ts'
import { agentQuery, projectPath } from '../../api/queries.ts'
import { useRole } from '../../app/role.ts'
import { BudgetBar } from '../../parts/budget-bar.tsx'
import { Problem } from '../../parts/problem.tsx'
import { showMarks } from '../../parts/property-diff.ts'
import { Status } from '../../parts/status.tsx'
import { typedNumber } from '../../parts/typed-number.ts'
import { When } from '../../parts/when.tsx'
import { AgentControls } from './controls.tsx'
import { MessageList } from './message-list.tsx'
import classes from './organisation.module.css'
import { TaskList } from './task-list.tsx'
import { useAct } from './use-act.ts'

const TABS = ['tasks', 'messages', 'reports'] as const
const NAMES = { tasks: 'Tasks', messages: 'Messages', reports: 'Reports' }

interface Props {
  projectId: string
  agent: OrgAgent
  tab: string | undefined
  onTab: (tab: string) => void
  onTask: (taskId: string) => void
  onClose: () => void
}

export function AgentPanel({ projectId, agent, tab, onTab, onTask, onClose }: Props) {
  const isAdmin = useRole(projectId) === 'admin'
  const { data: whole } = useQuery(agentQuery(projectId, agent.id))
  const current = TABS.find((each) => each === tab) ?? 'tasks'
  return (
    <Stack gap="md">
      <div>
        <Group justify="space-between" wrap="nowrap">
          <Group gap="sm">
            <Title order={2}>{showMarks(agent.name)}</Title>
            <Status of={agent.status} />
          </Group>
          <Button
            size="compact-xs"
            variant="subtle"
            color="gray"
            leftSection={<X size={12} aria-hidden />}
            onClick={onClose}
          >
            Whole organisation
          </Button>
        </Group>
        <p className="dim" style={{ margin: 0 }}>
          {showMarks(agent.role) || 'No role is written.'}{' '}
          <Link to="/projects/$projectId/agents/$agentId" params={{ projectId, agentId: agent.id }}>
            Its page
          </Link>
        </p>
      </div>
      <WhyNot agent={agent} isEnabled={whole?.enabled ?? true} />
      {isAdmin && <AgentControls projectId={projectId} agent={agent} />}
      <dl className={classes.facts} data-tour="budget">
        {agent.competencies.length > 0 && (
          <>
            <dt>Knows</dt>
            <dd>{agent.competencies.map(showMarks).join(', ')}</dd>
          </>
        )}
        <dt>Last at work</dt>
        <dd>
          <When at={whole?.last_worked_at ?? null} />
        </dd>
        <dt>Budget</dt>
        <dd>
          <BudgetBar used={agent.token_used} of={agent.token_allocation} />
        </dd>
      </dl>
      {isAdmin && agent.token_allocation !== null && (
        <TopUp projectId={projectId} agent={agent} most={agent.token_allocation} />
      )}
      <Tabs value={current} onChange={(value) => value && onTab(value)} keepMounted={false}>
        <Tabs.List>
          {TABS.map((each) => (
            <Tabs.Tab key={each} value={each}>
              {NAMES[each]}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        <Tabs.Panel value="tasks" pt="sm">
          <TaskList projectId={projectId} agentId={agent.id} onTask={onTask} />
        </Tabs.Panel>
        <Tabs.Panel value="messages" pt="sm">
          <MessageList projectId={projectId} agentId={agent.id} onTask={onTask} />
        </Tabs.Panel>
        <Tabs.Panel value="reports" pt="sm">
          <MessageList projectId={projectId} agentId={agent.id} onTask={onTask} isReports />
        </Tabs.Panel>
      </Tabs>
    </Stack>
  )
}

/** The reason why the agent takes up no tasks. */
function WhyNot({ agent, isEnabled }: { agent: OrgAgent; isEnabled: boolean }) {
  const why = !isEnabled
    ? 'It is disabled: nothing starts it.'
    : agent.paused_for === 'budget'
      ? 'Its tokens are used up. Top up, and it goes on where it stood.'
      : agent.paused_for === 'stopped'
        ? 'Somebody stopped it. Start lets it go on.'
        : agent.status === 'stuck'
          ? 'A task failed too often. Answer its escalation, give the task to another agent, or start it again.'
          : null
  return why === null ? null : <p className={classes.amber}>{why}</p>
}

const MORE_TOKENS = 10_000

function TopUp({ projectId, agent, most }: { projectId: string; agent: OrgAgent; most: number }) {
  const [add, setAdd] = useState<number | string>(Math.max(most, MORE_TOKENS))
  const { act, isBusy, problem } = useAct(projectId)
  const path = projectPath(projectId, `/agents/${agent.id}/budget`)
  return (
    <div>
      <Group gap="xs" align="flex-end">
        <NumberInput
          label="Tokens to add"
          size="xs"
          w={150}
          min={1}
          step={1_000}
          thousandSeparator=" "
          value={add}
          onChange={setAdd}
        />
        <Button
          size="xs"
          variant="default"
          loading={isBusy}
          disabled={!(Number(add) >= 1)}
          onClick={() =>
            void act(() => post(path, { add: typedNumber(add) }), `${showMarks(agent.name)} has more tokens.`)
          }
        >
          Top up
        </Button>
      </Group>
      <Problem text={problem} />
    </div>
  )
}
