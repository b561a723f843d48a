// The navigation at the left: the project, search, and every page. On a phone a bar on top, with a menu button.
import {
  ActionIcon,
  Kbd,
  Menu,
  Select,
  UnstyledButton,
  useComputedColorScheme,
  useMantineColorScheme,
} from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link, useLocation, useNavigate, useParams } from '@tanstack/react-router'
import {
  CircleUser,
  Compass,
  Hexagon,
  House,
  LogOut,
  Menu as MenuIcon,
  Moon,
  Search,
  Sun,
  UserCog,
  X,
} from 'lucide-react'
import { type KeyboardEvent, useEffect, useRef, useState } from 'react'
import { useInboxCount } from '../api/inbox.ts'
import { projectsQuery } from '../api/queries.ts'
import { useMe, useSignOut } from './gate.tsx'
import { jump, tour } from './openers.ts'
import { GROUPS, SETTINGS, samePlace } from './places.ts'
import classes from './shell.module.css'

const LINKS = 'rail-links'

export function Rail() {
  const { projectId } = useParams({ strict: false })
  const { pathname } = useLocation()
  const [isOpen, setIsOpen] = useState(false)
  const button = useRef<HTMLButtonElement>(null)
  // biome-ignore lint/correctness/useExhaustiveDependencies: the menu closes when the address changes
  useEffect(() => setIsOpen(false), [pathname])
  const closeOnEscape = ({ key }: KeyboardEvent): void => {
    if (key !== 'Escape' || !isOpen) return
    setIsOpen(false)
    button.current?.focus()
  }
  const startTour = (): void => {
    setIsOpen(false)
    tour.open()
  }
  return (
    <nav aria-label="Main" className={classes.rail} onKeyDown={closeOnEscape}>
      <div className={classes.top}>
        <div className={classes.brand}>
          <Hexagon size={18} color="var(--accent)" aria-hidden />
          Muster
        </div>
        <ActionIcon
          ref={button}
          id="menu-button"
          className={classes.burger}
          variant="subtle"
          color="gray"
          aria-label="Menu"
          aria-expanded={isOpen}
          aria-controls={LINKS}
          onClick={() => setIsOpen(!isOpen)}
        >
          {isOpen ? <X size={18} aria-hidden /> : <MenuIcon size={18} aria-hidden />}
        </ActionIcon>
      </div>
      <div id={LINKS} className={classes.links} data-open={isOpen || undefined}>
        <ProjectSwitch projectId={projectId} />
        <UnstyledButton className={classes.search ?? ''} onClick={jump.open}>
          <Search size={14} aria-hidden />
          <span>Search or jump…</span>
          <Kbd size="xs" aria-hidden>
            {MOD}K
          </Kbd>
        </UnstyledButton>
        <Pages projectId={projectId} />
        <div className={classes.foot}>
          <UnstyledButton id="tour-button" className={classes.link ?? ''} onClick={startTour}>
            <Compass size={15} aria-hidden />
            Tour
          </UnstyledButton>
          {projectId && (
            <Link to={SETTINGS.to} params={{ projectId }} className={classes.link ?? ''}>
              <SETTINGS.icon size={15} aria-hidden />
              {SETTINGS.label}
            </Link>
          )}
          <div className={classes.tools}>
            <Account projectId={projectId} />
            <Theme />
          </div>
        </div>
      </div>
    </nav>
  )
}

const MOD = /mac|iphone|ipad/i.test(navigator.userAgent) ? '⌘' : 'Ctrl '

function Pages({ projectId }: { projectId: string | undefined }) {
  return (
    <>
      <Link to="/" className={classes.link ?? ''} activeOptions={{ exact: true }}>
        <House size={15} aria-hidden />
        Home
      </Link>
      {projectId &&
        GROUPS.map(({ name, links }) => (
          <div key={name}>
            <div className={classes.group}>{name}</div>
            {links.map(({ to, label, icon: Icon }) => (
              <Link key={to} to={to} params={{ projectId }} className={classes.link ?? ''}>
                <Icon size={15} aria-hidden />
                {label}
                {label === 'Inbox' && <InboxCount projectId={projectId} />}
              </Link>
            ))}
          </div>
        ))}
    </>
  )
}

function InboxCount({ projectId }: { projectId: string }) {
  const count = useInboxCount(projectId)
  return count === null ? null : <span className={classes.count}>{count}</span>
}

/** A list of thousands would be slow to open. The search is over all projects. */
const MOST_OPTIONS = 500

function ProjectSwitch({ projectId }: { projectId: string | undefined }) {
  const navigate = useNavigate()
  const { pathname } = useLocation()
  const { data } = useQuery(projectsQuery)
  return (
    <Select
      aria-label="Project"
      placeholder="Choose a project"
      size="xs"
      searchable={(data?.items.length ?? 0) > 8}
      limit={MOST_OPTIONS}
      nothingFoundMessage="No project has this name."
      allowDeselect={false}
      data={(data?.items ?? []).map(({ id, name }) => ({ value: id, label: name }))}
      value={projectId ?? null}
      onChange={(id) => id && void navigate({ to: samePlace(pathname), params: { projectId: id } })}
    />
  )
}

function Account({ projectId }: { projectId: string | undefined }) {
  const me = useMe()
  const navigate = useNavigate()
  const signOut = useSignOut()
  const name = me.name ?? me.email ?? 'you'
  const openAccount = (): void =>
    void (projectId
      ? navigate({ to: '/projects/$projectId/settings/$section', params: { projectId, section: 'account' } })
      : navigate({ to: '/account' }))
  return (
    <Menu position="top-start" shadow="md" width={200}>
      <Menu.Target>
        <UnstyledButton className={classes.account ?? ''} aria-label={`Account: ${name}`}>
          <CircleUser size={15} aria-hidden />
          <span className="cut">{name}</span>
        </UnstyledButton>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item leftSection={<UserCog size={14} aria-hidden />} onClick={openAccount}>
          Your account
        </Menu.Item>
        <Menu.Item leftSection={<LogOut size={14} aria-hidden />} onClick={() => void signOut()}>
          Sign out
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  )
}

/** Follows the system until it is pressed. */
function Theme() {
  const { setColorScheme } = useMantineColorScheme()
  const scheme = useComputedColorScheme('dark')
  const Icon = scheme === 'dark' ? Sun : Moon
  return (
    <ActionIcon
      variant="subtle"
      color="gray"
      aria-label="Theme"
      onClick={() => setColorScheme(scheme === 'dark' ? 'light' : 'dark')}
    >
      <Icon size={15} aria-hidden />
    </ActionIcon>
  )
}
