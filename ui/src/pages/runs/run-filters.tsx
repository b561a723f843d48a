// The filters of the list of runs. They are kept in the address.
import { Checkbox, Group, Select, TextInput } from '@mantine/core'
import { useDebouncedCallback } from '@mantine/hooks'
import { useQuery } from '@tanstack/react-query'
import { Search } from 'lucide-react'
import { useState } from 'react'
import { everyAgent, orgQuery } from '../../api/organisation.ts'
import { PERIODS, type RunSearch, withoutSubRuns } from './run-search.ts'

const MOST_SHOWN = 50
const TYPING_MS = 300
const STATUSES = ['queued', 'running', 'paused', 'completed', 'failed', 'cancelled']
const PERIOD_NAMES = Object.entries(PERIODS).map(([value, { label }]) => ({ value, label }))

interface Props {
  projectId: string
  search: RunSearch
  onChange: (change: RunSearch) => void
}

export function RunFilters({ projectId, search, onChange }: Props) {
  const { status, agent, period } = search
  return (
    <Group gap="xs">
      <Find q={search.q} onFind={(q) => onChange({ q })} />
      <Select
        aria-label="Period"
        placeholder="Any time"
        size="xs"
        w={130}
        clearable
        data={PERIOD_NAMES}
        value={period ?? null}
        onChange={(value) => onChange({ period: value ?? undefined })}
      />
      <Select
        aria-label="Status"
        placeholder="Any status"
        size="xs"
        w={130}
        clearable
        data={STATUSES}
        value={status ?? null}
        onChange={(value) => onChange({ status: value ?? undefined })}
      />
      <AgentFilter projectId={projectId} agent={agent} onChange={onChange} />
      <Checkbox
        size="xs"
        label="Only started by people or triggers"
        checked={withoutSubRuns(search)}
        disabled={agent !== undefined}
        {...(agent !== undefined && { description: 'Not for one agent' })}
        onChange={(event) => onChange({ subruns: event.currentTarget.checked ? 'hidden' : undefined })}
      />
    </Group>
  )
}

function AgentFilter({ projectId, agent, onChange }: Omit<Props, 'search'> & { agent: string | undefined }) {
  const tree = useQuery({ ...orgQuery(projectId), refetchInterval: false })
  return (
    <Select
      aria-label="Agent"
      placeholder="Any agent"
      size="xs"
      w={180}
      clearable
      searchable
      limit={MOST_SHOWN}
      nothingFoundMessage="No agent has this name."
      data={everyAgent(tree.data ?? []).map(({ id, name }) => ({ value: id, label: name }))}
      value={agent ?? null}
      onChange={(value) => onChange({ agent: value ?? undefined })}
    />
  )
}

function Find({ q = '', onFind }: { q: string | undefined; onFind: (q: string | undefined) => void }) {
  const [text, setText] = useState(q)
  const [sent, setSent] = useState(q)
  // The address was changed by other means than this field.
  if (q !== sent) {
    setSent(q)
    setText(q)
  }
  const find = useDebouncedCallback((words: string) => {
    setSent(words)
    onFind(words || undefined)
  }, TYPING_MS)
  return (
    <TextInput
      type="search"
      aria-label="Find"
      placeholder="Find in input, answer, agent"
      size="xs"
      w={220}
      maxLength={200}
      leftSection={<Search size={13} aria-hidden />}
      value={text}
      onChange={(event) => {
        setText(event.currentTarget.value)
        find(event.currentTarget.value.trim())
      }}
    />
  )
}
