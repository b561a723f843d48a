// Tools picked from the list of the project, each with what it does and what a call may change. Names are typed freely
// too: `mcp:server/*` stands for all tools of a server.
import { Group, TagsInput, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import type { ListedTool } from '../../../../src/kernel/listed-tool.ts'
import { toolsQuery } from '../../api/agents.ts'
import { splitNames } from './agent-draft.ts'
import classes from './agents.module.css'

const MOST_SHOWN = 100

interface Props {
  projectId: string
  label: string
  description?: string
  value: string[]
  error?: ReactNode
  path: string
  onChange: (tools: string[]) => void
}

export function ToolsField({ projectId, label, description, value, error, path, onChange }: Props) {
  const tools = useQuery(toolsQuery(projectId))
  const byName = new Map(tools.data?.map((tool) => [tool.name, tool]))
  const servers = new Set(tools.data?.flatMap(({ name }) => /^mcp:[^/]+\//.exec(name)?.[0] ?? []))
  return (
    <div>
      <TagsInput
        label={label}
        description={description}
        placeholder={value.length === 0 ? 'Search the tools' : ''}
        data={[...byName.keys(), ...[...servers].map((server) => `${server}*`)]}
        limit={MOST_SHOWN}
        maxDropdownHeight={320}
        value={value}
        onChange={(values) => onChange(splitNames(values, value))}
        error={error}
        data-path={path}
        renderOption={({ option }) => <ToolLine name={option.value} tool={byName.get(option.value)} />}
      />
      {value.length > 0 && (
        <ul className={classes.items} aria-label="Chosen">
          {value.map((name) => (
            <li key={name}>
              <ToolLine name={name} tool={byName.get(name)} />
            </li>
          ))}
        </ul>
      )}
    </div>
  )
}

export function ToolLine({ name, tool }: { name: string; tool: ListedTool | undefined }) {
  return (
    <div style={{ minWidth: 0, flex: 1 }}>
      <Group gap="xs" wrap="nowrap">
        <code className="mono cut">{name}</code>
        {tool && <Effect of={tool.effect} />}
      </Group>
      <Text size="xs" className="dim" lineClamp={2}>
        {tool?.description ?? (name.endsWith('/*') ? 'All tools of this server' : '')}
      </Text>
    </div>
  )
}

const EFFECTS: Record<ListedTool['effect'], { text: string; tone: string; title: string }> = {
  readonly: { text: 'only reads', tone: 'completed', title: 'A call changes nothing.' },
  keyed: {
    text: 'writes, repeatable',
    tone: 'running',
    title: 'A call is made again after a crash, under the same key.',
  },
  unsafe: { text: 'writes, once', tone: 'blocked', title: 'A call is never made again by itself: people decide.' },
}

function Effect({ of }: { of: ListedTool['effect'] }) {
  const { text, tone, title } = EFFECTS[of]
  return (
    <span className={classes.effect} style={{ color: `var(--${tone})` }} title={title}>
      {text}
    </span>
  )
}
