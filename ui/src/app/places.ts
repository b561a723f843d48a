// Every page of a project, as the navigation and the search list them.
import {
  Bot,
  Boxes,
  FileText,
  FlaskConical,
  Inbox,
  MessageSquare,
  Network,
  Play,
  Settings,
  Workflow,
} from 'lucide-react'

const OPERATE = [
  { to: '/projects/$projectId/flows', label: 'Flows', icon: Workflow },
  { to: '/projects/$projectId/runs', label: 'Runs', icon: Play },
  { to: '/projects/$projectId/inbox', label: 'Inbox', icon: Inbox },
  { to: '/projects/$projectId/organisation', label: 'Organisation', icon: Network },
] as const

const BUILD = [
  { to: '/projects/$projectId/agents', label: 'Agents', icon: Bot },
  { to: '/projects/$projectId/prompts', label: 'Prompts', icon: FileText },
  { to: '/projects/$projectId/playground', label: 'Playground', icon: MessageSquare },
] as const

const IMPROVE = [
  { to: '/projects/$projectId/evals', label: 'Evals', icon: FlaskConical },
  { to: '/projects/$projectId/objects', label: 'Objects', icon: Boxes },
] as const

export const GROUPS = [
  { name: 'Operate', links: OPERATE },
  { name: 'Build', links: BUILD },
  { name: 'Improve', links: IMPROVE },
] as const

export const SETTINGS = { to: '/projects/$projectId/settings', label: 'Settings', icon: Settings } as const

export const PLACES = [...OPERATE, ...BUILD, ...IMPROVE, SETTINGS] as const

/** The page of another project that shows the same as the present address. */
export function samePlace(pathname: string): (typeof PLACES)[number]['to'] {
  const section = pathname.split('/')[3] ?? ''
  return PLACES.find(({ to }) => to.endsWith(`/${section}`))?.to ?? '/projects/$projectId/runs'
}

export const SECTIONS = [
  { section: 'providers', label: 'Providers', isFor: 'viewer' },
  { section: 'mcp', label: 'MCP servers', isFor: 'viewer' },
  { section: 'keys', label: 'Keys', isFor: 'admin' },
  { section: 'members', label: 'Members', isFor: 'viewer' },
  { section: 'limits', label: 'Limits', isFor: 'viewer' },
  { section: 'audit', label: 'Audit', isFor: 'admin' },
  { section: 'account', label: 'Your account', isFor: 'viewer' },
] as const
