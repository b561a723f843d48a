// The definition at a glance.
import { Stack, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { Agent } from '../../../../src/kernel/agent.ts'
import type { OrgAgent } from '../../../../src/kernel/org.ts'
import { flowChoicesQuery, settingsQuery, toolsQuery } from '../../api/agents.ts'
import { everyAgent, orgQuery } from '../../api/organisation.ts'
import { AgentName } from '../../parts/agent-name.tsx'
import { duration } from '../../parts/figures.ts'
import { Value } from '../../parts/value.tsx'
import { When } from '../../parts/when.tsx'
import { definitionOf } from './agent-draft.ts'
import { Chips, Copyable, type FactRow, Facts } from './agent-pieces.tsx'
import classes from './agents.module.css'
import { ToolLine } from './tools-field.tsx'

export function AgentOverview({ agent }: { agent: Agent }) {
  return (
    <div className={classes.columns}>
      <Stack gap="lg">
        <PromptOf agent={agent} />
        <ToolsOf agent={agent} />
        <details>
          <summary>Definition as JSON</summary>
          <Value of={definitionOf(agent)} />
        </details>
      </Stack>
      <Stack gap="lg">
        <Definition agent={agent} />
        <Organisation agent={agent} />
        <Copyable label="Id" value={agent.id} />
      </Stack>
    </div>
  )
}

function PromptOf({ agent }: { agent: Agent }) {
  const { prompt, prompt_id, flow_type, steps, project_id: projectId } = agent
  return (
    <section aria-labelledby="prompt-of-agent">
      <Title order={2} mb="xs" id="prompt-of-agent">
        Prompt
      </Title>
      {prompt_id !== null && (
        <p>
          The prompt{' '}
          <Link
            to="/projects/$projectId/prompts"
            params={{ projectId }}
            search={{ prompt: prompt_id }}
            className={classes.inText}
          >
            {prompt_id}
          </Link>{' '}
          of the library
        </p>
      )}
      {prompt !== null && <p className={classes.prose}>{prompt}</p>}
      {prompt === null && prompt_id === null && (
        <p className="dim">{flow_type === 'flow' ? 'Its flow needs none.' : 'It has none: the input says it all.'}</p>
      )}
      {flow_type === 'sequential' && (
        <ol className={classes.items} aria-label="Steps">
          {steps.map(({ prompt: text, tools }, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: the steps have no other identity
            <li key={index}>
              <span className="dim">Step {index + 1}</span>
              <p className={classes.prose}>{text}</p>
              {tools && (
                <span className="dim">
                  uses only <Chips of={tools.length > 0 ? tools : ['no tool']} />
                </span>
              )}
            </li>
          ))}
        </ol>
      )}
    </section>
  )
}

function ToolsOf({ agent }: { agent: Agent }) {
  const tools = useQuery(toolsQuery(agent.project_id))
  const byName = new Map(tools.data?.map((tool) => [tool.name, tool]))
  return (
    <section aria-labelledby="tools-of-agent">
      <Title order={2} mb="xs" id="tools-of-agent">
        Tools
      </Title>
      {agent.tools.length === 0 ? (
        <p className="dim">None</p>
      ) : (
        <ul className={classes.items} aria-labelledby="tools-of-agent">
          {agent.tools.map((name) => (
            <li key={name}>
              <ToolLine name={name} tool={byName.get(name)} />
            </li>
          ))}
        </ul>
      )}
    </section>
  )
}

function Definition({ agent }: { agent: Agent }) {
  const settings = useQuery(settingsQuery(agent.project_id))
  const { model } = agent
  const standard = settings.data?.default_model
  const rows: FactRow[] = [
    { name: 'Role', value: agent.role },
    {
      name: 'Model',
      value: model
        ? `${model.provider}/${model.name}`
        : `default${standard ? `: ${standard.provider}/${standard.name}` : ''}`,
    },
    { name: 'Temperature', value: model?.temperature ?? null },
    { name: 'How it works', value: <WayOf agent={agent} /> },
    { name: 'Trigger', value: agent.trigger_type },
    { name: 'Mode', value: agent.execution_mode },
    {
      name: 'Asks before',
      value: agent.require_approval.length > 0 ? <Chips of={agent.require_approval} /> : null,
    },
    { name: 'May not', value: deniedBy(agent.capabilities) },
    { name: 'Step limit', value: agent.max_steps ?? 'none' },
    { name: 'Timeout', value: agent.default_timeout === null ? 'none' : duration(agent.default_timeout) },
    { name: 'Last worked', value: <When at={agent.last_worked_at} /> },
    { name: 'Changed', value: <When at={agent.updated_at} /> },
  ]
  return (
    <section aria-labelledby="definition-of-agent">
      <Title order={2} mb="xs" id="definition-of-agent">
        Definition
      </Title>
      <Facts rows={rows} />
    </section>
  )
}

function WayOf({ agent }: { agent: Agent }) {
  const { flow_type, steps, max_iterations, flow, project_id: projectId } = agent
  const flows = useQuery({ ...flowChoicesQuery(projectId), enabled: flow_type === 'flow' })
  switch (flow_type) {
    case 'single':
      return 'until it is done'
    case 'sequential':
      return `${steps.length} ${steps.length === 1 ? 'step' : 'steps'} in a row`
    case 'loop':
      return `a loop of ${max_iterations ?? 10} rounds at most`
    case 'flow': {
      const stored = flows.data?.find(({ id, name }) => id !== null && (id === flow || name === flow))
      if (!stored?.id) return `the flow ${flow}`
      return (
        <>
          the flow{' '}
          <Link
            to="/projects/$projectId/flows/definitions/$flowId"
            params={{ projectId, flowId: stored.id }}
            className={classes.inText}
          >
            {stored.name}
          </Link>
        </>
      )
    }
  }
}

function deniedBy({ canCreateObjects, canUpdateObjects, canDeleteObjects, allowedObjectTypes }: Agent['capabilities']) {
  const rules = [
    ...(canCreateObjects ? [] : ['create objects']),
    ...(canUpdateObjects ? [] : ['update objects']),
    ...(canDeleteObjects ? [] : ['delete objects']),
    ...(allowedObjectTypes === undefined
      ? []
      : [allowedObjectTypes.length === 0 ? 'touch any object' : `touch objects but ${allowedObjectTypes.join(', ')}`]),
  ]
  return rules.length === 0 ? null : rules.join(', ')
}

function Organisation({ agent }: { agent: Agent }) {
  const { project_id: projectId, senior_id, competencies } = agent
  const tree = useQuery({ ...orgQuery(projectId), refetchInterval: false })
  const subordinates = everyAgent(tree.data ?? []).find(({ id }) => id === agent.id)?.subordinates ?? []
  const linkTo = ({ id, name }: OrgAgent) => (
    <Link key={id} to="/projects/$projectId/agents/$agentId" params={{ projectId, agentId: id }}>
      {name}
    </Link>
  )
  const rows: FactRow[] = [
    { name: 'Senior', value: senior_id === null ? 'none' : <AgentName projectId={projectId} agentId={senior_id} /> },
    {
      name: 'Subordinates',
      value: subordinates.length > 0 ? <span className={classes.chips}>{subordinates.map(linkTo)}</span> : null,
    },
    { name: 'Competencies', value: competencies.length > 0 ? <Chips of={competencies} /> : null },
  ]
  return (
    <section aria-labelledby="place-of-agent">
      <Title order={2} mb="xs" id="place-of-agent">
        Organisation
      </Title>
      <Facts rows={rows} />
    </section>
  )
}
