// Tools picked from the list of the project, each with what it does and what a call may change. Names are typed freely
// too: `mcp:server/*` stands for all tools of a server.
import { Group, type OptionsFilter, TagsInput, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { type KeyboardEvent, type ReactNode, useState } from 'react'
import type { ListedTool } from '../../../../src/kernel/listed-tool.ts'
import { toolsQuery } from '../../api/agents.ts'
import { splitNames, suggestedTools } from './agent-draft.ts'
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
  const [search, setSearch] = useState('')
  const byName = new Map(tools.data?.map((tool) => [tool.name, tool]))
  const servers = new Set(tools.data?.flatMap(({ name }) => /^mcp:[^/]+\//.exec(name)?.[0] ?? []))
  const names = [...byName.keys(), ...[...servers].map((server) => `${server}*`)]
  /** Enter takes the first suggestion, also if the list came too late to mark it. */
  const takeFirst = (event: KeyboardEvent<HTMLInputElement>): void => {
    if (event.key !== 'Enter' || search.trim() === '' || event.nativeEvent.isComposing) return
    const first = suggestedTools(
      names.filter((name) => !value.includes(name)),
      search,
    )[0]
    if (first === undefined || hasMarked(event.currentTarget)) return
    event.preventDefault()
    setSearch('')
    onChange([...value, first])
  }
  return (
    <div>
      <TagsInput
        label={label}
        description={description}
        placeholder={value.length === 0 ? 'Search the tools' : ''}
        data={names}
        searchValue={search}
        onSearchChange={setSearch}
        filter={filter}
        // Without any letters nothing is meant yet.
        selectFirstOptionOnChange={search.trim() !== ''}
        onKeyDown={takeFirst}
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

const filter: OptionsFilter = ({ options, search, limit }) => {
  const known = new Map(options.flatMap((option) => ('group' in option ? [] : [[option.value, option]])))
  return suggestedTools([...known.keys()], search)
    .slice(0, limit)
    .flatMap((name) => known.get(name) ?? [])
}

/** The arrow keys, or the letters, have marked an entry of the list below the field. */
function hasMarked(field: HTMLElement): boolean {
  const list = document.getElementById(field.getAttribute('aria-controls') ?? '')
  return list?.querySelector('[data-combobox-selected]') != null
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

const EFFECTS: Record<ListedTool['effect'], { text: string; title: string }> = {
  readonly: { text: 'only reads', title: 'A call changes nothing.' },
  keyed: { text: 'writes, repeatable', title: 'A call is made again after a crash, under the same key.' },
  unsafe: { text: 'writes, once', title: 'A call is never made again by itself: people decide.' },
}

function Effect({ of }: { of: ListedTool['effect'] }) {
  const { text, title } = EFFECTS[of]
  return (
    <span className={classes.effect} data-effect={of} title={title}>
      {text}
    </span>
  )
}
