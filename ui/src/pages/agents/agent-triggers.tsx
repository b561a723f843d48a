// The triggers of the agent: its schedule, its hooks, or the changes of objects that it reacts to.
import { Stack, Text, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import type { Agent } from '../../../../src/kernel/agent.ts'
import { agentScheduleQuery } from '../../api/agents.ts'
import { When } from '../../parts/when.tsx'
import { AgentHooks } from './agent-hooks.tsx'
import { Chips, Facts } from './agent-pieces.tsx'
import { NextTimes, useNextTimes } from './next-times.tsx'

export function AgentTriggers({ agent }: { agent: Agent }) {
  return (
    <Stack gap="lg" maw={900}>
      {!agent.enabled && <Text className="dim">Nothing starts it while it is disabled.</Text>}
      <TriggerOf agent={agent} />
      <Text size="sm" className="dim">
        People, tasks and other agents can start every agent, whatever its trigger.
      </Text>
    </Stack>
  )
}

function TriggerOf({ agent }: { agent: Agent }) {
  switch (agent.trigger_type) {
    case 'manual':
      return <Text>It has no trigger of its own: it runs when somebody presses Trigger, or calls the API.</Text>
    case 'schedule':
      return <ScheduleOf agent={agent} />
    case 'webhook':
      return <AgentHooks agent={agent} />
    case 'reaction':
      return <ReactionOf agent={agent} />
  }
}

function Titled({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section aria-label={title}>
      <Title order={2} mb="sm">
        {title}
      </Title>
      {children}
    </section>
  )
}

const CATCH_UP = { once: 'one run for all that were missed', skip: 'none', all: 'every run, the last 100 at most' }

function ScheduleOf({ agent }: { agent: Agent }) {
  const { project_id: projectId, id, cron_schedule, timezone, catch_up, enabled } = agent
  const { times } = useNextTimes(projectId, cron_schedule ?? '', timezone)
  const schedule = useQuery(agentScheduleQuery(projectId, id))
  return (
    <Titled title="Schedule">
      <Stack>
        <Facts
          rows={[
            { name: 'Schedule', value: <code className="mono">{cron_schedule}</code> },
            { name: 'Time zone', value: timezone },
            { name: 'Missed in an outage', value: CATCH_UP[catch_up] },
            { name: 'Started last', value: <When at={schedule.data?.last_run_at ?? null} /> },
            {
              name: 'Starts next',
              value: enabled ? <When at={schedule.data?.next_run_at ?? null} /> : 'not while it is disabled',
            },
          ]}
        />
        {enabled && <NextTimes times={times} timezone={timezone} />}
      </Stack>
    </Titled>
  )
}

const CONCURRENCY = {
  skip: 'events of the version it works on are passed over',
  parallel: 'each event starts a run',
}

function ReactionOf({ agent }: { agent: Agent }) {
  const config = agent.reaction_config
  if (config === null) return <Text>It reacts to nothing: its filters are missing.</Text>
  const ignored = [
    ...(config.ignoreSelfTriggered ? ['its own changes'] : []),
    ...(config.ignoreAgentTriggered ? ["all agents' changes"] : []),
  ]
  return (
    <Titled title="Reaction">
      <Facts
        rows={[
          { name: 'Object types', value: <Chips of={config.objectTypes} /> },
          { name: 'Events', value: <Chips of={config.events} /> },
          { name: 'Ignores', value: ignored.length === 0 ? 'nothing' : ignored.join(', ') },
          { name: 'While it works on the object', value: CONCURRENCY[config.concurrencyStrategy] },
        ]}
      />
    </Titled>
  )
}
