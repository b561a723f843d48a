// The deeds of people and agents in the project, newest first.

import { Alert, Button, Group, Text, TextInput } from '@mantine/core'
import { useDebouncedCallback } from '@mantine/hooks'
import { useInfiniteQuery } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { ShieldCheck } from 'lucide-react'
import { useState } from 'react'
import type { AuditEntry, AuditVerdict } from '../../../../src/kernel/access.ts'
import { auditQuery, verifyChain } from '../../api/settings.ts'
import { useMe } from '../../app/gate.tsx'
import { oneLine } from '../../parts/figures.ts'
import { PagedList } from '../../parts/paged-list.tsx'
import { showMarks } from '../../parts/property-diff.ts'
import { useWrite } from '../../parts/use-write.ts'
import { Value } from '../../parts/value.tsx'
import { When } from '../../parts/when.tsx'
import { Section } from './section.tsx'
import classes from './settings.module.css'
import { TargetLink } from './target-link.tsx'

const ROUTE = '/projects/$projectId/settings/$section'
const route = getRouteApi(ROUTE)
const TYPING_PAUSE_MS = 300

export function AuditPanel({ projectId }: { projectId: string }) {
  const { action, who } = route.useSearch()
  const me = useMe()
  // The list calls the reader "you".
  const actor = who?.toLowerCase() === 'you' ? (me.id ?? who) : who
  const entries = useInfiniteQuery(auditQuery(projectId, { action, actor }))
  return (
    <Section name="Audit" about="Entries are only ever added." action={me.instance_admin && <Verify />}>
      <Filters projectId={projectId} />
      <PagedList
        of={entries}
        what="entries"
        empty={action || who ? 'No entry matches.' : 'Nothing has been done in this project yet.'}
      >
        {(items) => (
          <ul className={classes.list} aria-label="Audit entries, newest first">
            {items.map((entry) => (
              <Entry key={entry.id} of={entry} projectId={projectId} />
            ))}
          </ul>
        )}
      </PagedList>
    </Section>
  )
}

/** The filters stand in the address, so that a filtered list can be shared. */
function Filters({ projectId }: { projectId: string }) {
  const search = route.useSearch()
  const navigate = useNavigate()
  const [typed, setTyped] = useState({ action: search.action ?? '', who: search.who ?? '' })
  const apply = useDebouncedCallback((next: typeof typed) => {
    const given = Object.entries(next).flatMap(([name, text]) => (text.trim() === '' ? [] : [[name, text.trim()]]))
    void navigate({
      to: ROUTE,
      params: { projectId, section: 'audit' },
      search: Object.fromEntries(given),
      replace: true,
    })
  }, TYPING_PAUSE_MS)
  const change = (part: Partial<typeof typed>): void => {
    const next = { ...typed, ...part }
    setTyped(next)
    apply(next)
  }
  return (
    <Group gap="sm" align="flex-end">
      <TextInput
        label="Action"
        size="xs"
        w={220}
        placeholder="run, run.start, agent.update …"
        value={typed.action}
        onChange={(event) => change({ action: event.currentTarget.value })}
      />
      <TextInput
        label="Who"
        size="xs"
        w={220}
        placeholder="you, an address, an agent, a key"
        value={typed.who}
        onChange={(event) => change({ who: event.currentTarget.value })}
      />
    </Group>
  )
}

function Entry({ of: entry, projectId }: { of: AuditEntry; projectId: string }) {
  const me = useMe()
  const { actor, actor_name, details, address } = entry
  const hasDetails = Object.keys(details).length > 0
  const who = actor.type === 'user' && actor.id === me.id ? 'you' : nameOf(actor.type, actor_name)
  return (
    <li className={classes.row}>
      <div className={classes.facts}>
        <Group gap="xs">
          <Text fw={500}>{entry.action}</Text>
          <TargetLink projectId={projectId} of={entry} />
        </Group>
        <Text size="sm" className="dim">
          by <span title={actor.id ?? ''}>{who}</span>
          {address !== null && ` from ${address}`} · <When at={entry.at} />
        </Text>
      </div>
      {hasDetails && (
        <details className={classes.wide}>
          <summary className="dim cut mono">{oneLine(details, 110)}</summary>
          <Value of={details} />
        </details>
      )}
    </li>
  )
}

/** Anybody may call a key or an agent "you" or like a person, so these are told with their kind. */
function nameOf(type: string, name: string | null): string {
  if (name === null) return type.replace('_', ' ')
  return type === 'key' || type === 'agent' ? `the ${type} ${showMarks(name)}` : name
}

/** Whether the whole log is as it was written. */
function Verify() {
  const { isBusy, problem, write } = useWrite()
  const [verdict, setVerdict] = useState<AuditVerdict | null>(null)
  return (
    <Group gap="sm">
      <div role="status">
        {problem && <Alert color="red">{problem}</Alert>}
        {!problem && verdict && (
          <Text size="sm" style={{ color: `var(--${verdict.ok ? 'completed' : 'failed'})` }}>
            {textOf(verdict)}
          </Text>
        )}
      </div>
      <Button
        size="xs"
        variant="default"
        loading={isBusy}
        leftSection={<ShieldCheck size={13} aria-hidden />}
        onClick={() => write(async () => setVerdict(await verifyChain()))}
      >
        Verify the chain
      </Button>
    </Group>
  )
}

function textOf(verdict: AuditVerdict): string {
  if (!verdict.ok) return `The chain is broken at block ${verdict.block}: ${verdict.reason}`
  const rest = verdict.unsealed > 0 ? `; ${verdict.unsealed} are not sealed yet` : ''
  return `The chain holds: ${verdict.rows} entries in ${verdict.blocks} blocks${rest}.`
}
