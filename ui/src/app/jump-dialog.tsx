// The search itself, loaded at its first use.
import '@mantine/spotlight/styles.css'
import { Group, Text, useComputedColorScheme, useMantineColorScheme } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { createSpotlight, Spotlight } from '@mantine/spotlight'
import { useQueries, useQuery } from '@tanstack/react-query'
import { useParams, useRouter } from '@tanstack/react-router'
import {
  Bot,
  Boxes,
  FolderOpen,
  House,
  Inbox,
  KeyRound,
  type LucideIcon,
  OctagonX,
  Play,
  Plus,
  Search,
  SunMoon,
  Workflow,
} from 'lucide-react'
import { useEffect, useState } from 'react'
import { projectsQuery } from '../api/queries.ts'
import { type Found, searchQuery } from '../api/search.ts'
import { Status } from '../parts/status.tsx'
import { When } from '../parts/when.tsx'
import { useMe } from './gate.tsx'
import { addressOf, cutAtWord, matches } from './jump-match.ts'
import { PLACES, SECTIONS, SETTINGS } from './places.ts'
import { useRole } from './role.ts'

const [store, { open }] = createSpotlight()

/** Without a project in the address so many projects are searched. */
const MOST_PROJECTS = 6
const MOST_LISTED = 8
const PAUSE_MS = 200
const LONGEST_DETAIL = 120

const ICONS: Record<Found['kind'], LucideIcon> = {
  agent: Bot,
  run: Play,
  flow: Workflow,
  flow_run: Workflow,
  object: Boxes,
  task: Inbox,
}

export function JumpDialog() {
  const [text, setText] = useState('')
  const entries = useEntries().filter(({ label, words }) => matches(text, `${label} ${words}`))
  const { found, isLooking, names } = useFound(text)
  const router = useRouter()
  const go = (address: string): void => void router.navigate({ href: address })
  useEffect(open, [])
  const shown = entries.length + found.length
  useEffect(() => {
    if (shown > 0) chooseFirst()
  }, [shown])
  const groups = [...new Set(entries.map(({ group }) => group))]
  return (
    <Spotlight.Root
      store={store}
      shortcut={null}
      scrollable
      maxHeight="min(60vh, 460px)"
      query={text}
      onQueryChange={setText}
      attributes={{ content: { 'aria-label': 'Search or jump' } }}
      overlayProps={{ backgroundOpacity: 0.35, blur: 0 }}
    >
      <Spotlight.Search
        size="md"
        placeholder="Search or jump…"
        aria-label="Search or jump"
        leftSection={<Search size={16} aria-hidden />}
      />
      <Spotlight.ActionsList>
        {groups.map((group) => (
          <Spotlight.ActionsGroup key={group} label={group}>
            {entries
              .filter((entry) => entry.group === group)
              .slice(0, text === '' && group === 'Projects' ? MOST_LISTED : undefined)
              .map(({ id, label, icon: Icon, onGo, address }) => (
                <Spotlight.Action
                  key={id}
                  label={label}
                  leftSection={<Icon size={15} aria-hidden />}
                  onClick={() => (address === undefined ? onGo?.() : go(address))}
                />
              ))}
          </Spotlight.ActionsGroup>
        ))}
        {found.length > 0 && (
          <Spotlight.ActionsGroup label="Found">
            {found.map((hit) => (
              <FoundAction
                key={`${hit.kind} ${hit.id}`}
                hit={hit}
                project={names.get(hit.projectId)}
                onGo={() => go(addressOf(hit))}
              />
            ))}
          </Spotlight.ActionsGroup>
        )}
      </Spotlight.ActionsList>
      {shown === 0 && <Spotlight.Empty>{isLooking ? 'Looking…' : 'Nothing is found.'}</Spotlight.Empty>}
    </Spotlight.Root>
  )
}

/** Results arrive after the letters, when the list has chosen its first entry already. */
function chooseFirst(): void {
  const { listId } = store.getState()
  const actions = document.getElementById(listId)?.querySelectorAll('[data-action]') ?? []
  for (const each of actions) each.removeAttribute('data-selected')
  actions[0]?.setAttribute('data-selected', 'true')
  store.updateState((state) => ({ ...state, selected: 0 }))
}

function FoundAction({ hit, project, onGo }: { hit: Found; project: string | undefined; onGo: () => void }) {
  const Icon = ICONS[hit.kind]
  const details = [hit.kind.replace('_', ' '), project, hit.detail].filter((part) => part)
  return (
    <Spotlight.Action
      label={cutAtWord(hit.title, LONGEST_DETAIL)}
      description={cutAtWord(details.join(' · '), LONGEST_DETAIL)}
      leftSection={<Icon size={15} aria-hidden />}
      rightSection={
        <Group gap="xs" wrap="nowrap">
          {hit.status && <Status of={hit.status} />}
          <Text component="span" size="xs" c="dimmed">
            <When at={hit.at} />
          </Text>
        </Group>
      }
      dimmedSections={false}
      onClick={onGo}
    />
  )
}

interface Entry {
  id: string
  group: 'Pages' | 'Actions' | 'Settings' | 'Projects'
  label: string
  /** Other words by which people look for it. */
  words: string
  icon: LucideIcon
  address?: string
  onGo?: () => void
}

function useEntries(): Entry[] {
  const { projectId } = useParams({ strict: false })
  const projects = useQuery(projectsQuery).data?.items ?? []
  const { setColorScheme } = useMantineColorScheme()
  const scheme = useComputedColorScheme('dark')
  return [
    { id: 'home', group: 'Pages', label: 'Home', words: 'start', icon: House, address: '/' },
    ...usePages(projectId),
    {
      id: 'theme',
      group: 'Actions',
      label: 'Switch between dark and light',
      words: 'theme colours',
      icon: SunMoon,
      onGo: () => setColorScheme(scheme === 'dark' ? 'light' : 'dark'),
    },
    ...projects
      .filter(({ id }) => id !== projectId)
      .map<Entry>(({ id, name }) => ({
        id,
        group: 'Projects',
        label: name,
        words: 'project',
        icon: FolderOpen,
        address: `/projects/${id}/runs`,
      })),
  ]
}

function usePages(projectId: string | undefined): Entry[] {
  const me = useMe()
  const role = useRole(projectId ?? '')
  const newProject: Entry[] = me.instance_admin
    ? [
        {
          id: 'new-project',
          group: 'Actions',
          label: 'New project',
          words: 'create',
          icon: Plus,
          address: '/?new=project',
        },
      ]
    : []
  if (!projectId) return newProject
  const below = `/projects/${projectId}`
  const pages = PLACES.map<Entry>(({ label, to, icon }) => ({
    id: to,
    group: 'Pages',
    label,
    words: 'page',
    icon,
    address: to.replace('/projects/$projectId', below),
  }))
  const actions = ['agents', 'flows'].map<Entry>((noun) => ({
    id: `new-${noun}`,
    group: 'Actions',
    label: `New ${noun.slice(0, -1)}`,
    words: 'create',
    icon: Plus,
    address: `${below}/${noun}/new`,
  }))
  const settings = SECTIONS.filter(({ isFor }) => isFor === 'viewer' || role === 'admin').map<Entry>(
    ({ section, label }) => ({
      id: section,
      group: 'Settings',
      label,
      words: `settings ${section}`,
      icon: SETTINGS.icon,
      address: `${below}/settings/${section}`,
    }),
  )
  const led: Entry[] = [
    {
      id: 'halt',
      group: 'Actions',
      label: 'Halt project…',
      words: 'off switch stop pause everything unhalt emergency',
      icon: OctagonX,
      address: `${below}/settings/limits#off-switch`,
    },
    {
      id: 'add-key',
      group: 'Actions',
      label: 'Add a key…',
      words: 'provider model openai anthropic google api secret',
      icon: KeyRound,
      address: `${below}/settings/providers`,
    },
  ]
  return [...pages, ...(role === 'admin' ? [...actions, ...led] : []), ...newProject, ...settings]
}

/** The finds of each project's search. */
function useFound(text: string) {
  const { projectId } = useParams({ strict: false })
  const projects = useQuery(projectsQuery).data?.items ?? []
  const [sought] = useDebouncedValue(text.trim(), PAUSE_MS)
  const ids = projectId ? [projectId] : projects.slice(0, MOST_PROJECTS).map(({ id }) => id)
  const answers = useQueries({ queries: ids.map((id) => searchQuery(id, sought)) })
  return {
    found: text.trim() === '' ? [] : answers.flatMap(({ data }) => data ?? []),
    isLooking: answers.some(({ isFetching }) => isFetching) || sought !== text.trim(),
    names: new Map(projectId ? [] : projects.map(({ id, name }) => [id, name])),
  }
}
