// The settings of a project, one section per address.
import { Stack, Text, Title } from '@mantine/core'
import { getRouteApi, Link } from '@tanstack/react-router'
import type { ComponentType } from 'react'
import { SECTIONS } from '../../app/places.ts'
import { useRole } from '../../app/role.ts'
import { Unknown } from '../../app/unknown.tsx'
import { PageHead } from '../../parts/page-head.tsx'
import { Panel } from '../../parts/panel.tsx'
import { AccountPanel } from './account-panel.tsx'
import { AuditPanel } from './audit-panel.tsx'
import { KeysPanel } from './keys-panel.tsx'
import { LimitsPanel } from './limits-panel.tsx'
import { McpPanel } from './mcp-panel.tsx'
import { MembersPanel } from './members-panel.tsx'
import { ProvidersPanel } from './providers-panel.tsx'
import classes from './settings.module.css'

const route = getRouteApi('/projects/$projectId/settings/$section')

const PANELS: Record<(typeof SECTIONS)[number]['section'], ComponentType<{ projectId: string }>> = {
  providers: ProvidersPanel,
  mcp: McpPanel,
  keys: KeysPanel,
  members: MembersPanel,
  limits: LimitsPanel,
  audit: AuditPanel,
  account: AccountPanel,
}

const SECTION = '/projects/$projectId/settings/$section'

/** What people look for most stands at the start of the settings. */
function Ways({ projectId, isAdmin }: { projectId: string; isAdmin: boolean }) {
  return (
    <Text size="sm">
      To use the models of a provider, add its key here.{' '}
      <Link to={SECTION} params={{ projectId, section: 'limits' }} hash="off-switch" className={classes.inText ?? ''}>
        The off switch
      </Link>
      , which stops all work of the project at once, is under Limits.
      {isAdmin && (
        <>
          {' '}
          Programs that call Muster use{' '}
          <Link to={SECTION} params={{ projectId, section: 'keys' }} className={classes.inText ?? ''}>
            a key of the project
          </Link>
          .
        </>
      )}
    </Text>
  )
}

export function SettingsPage() {
  const { projectId, section } = route.useParams()
  const role = useRole(projectId)
  const chosen = SECTIONS.find((each) => each.section === section)
  if (!chosen) return <Unknown />
  const mayOpen = (isFor: string): boolean => isFor === 'viewer' || role === 'admin'
  const Chosen = PANELS[chosen.section]
  return (
    <>
      <PageHead name={`${chosen.label} · Settings`} title={<Title order={1}>Settings</Title>} />
      <nav aria-label="Settings" className={classes.tabs}>
        {SECTIONS.filter(({ isFor }) => mayOpen(isFor)).map((each) => (
          <Link
            key={each.section}
            to="/projects/$projectId/settings/$section"
            params={{ projectId, section: each.section }}
            className={classes.tab ?? ''}
          >
            {each.label}
          </Link>
        ))}
      </nav>
      <Stack className={classes.body ?? ''} gap="xl">
        {chosen.section === 'providers' && <Ways projectId={projectId} isAdmin={role === 'admin'} />}
        {mayOpen(chosen.isFor) ? (
          <Panel name={chosen.label} key={section}>
            <Chosen projectId={projectId} />
          </Panel>
        ) : (
          <Text className="dim">Only admins of the project see this.</Text>
        )}
      </Stack>
    </>
  )
}
