// Home lists what waits for me, what failed, what runs and what today cost, over all my projects.
import { Button, Stack, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { Plus } from 'lucide-react'
import type { Home } from '../../../../src/kernel/home.ts'
import type { Project } from '../../../../src/kernel/project.ts'
import { homeQuery } from '../../api/home.ts'
import { projectsQuery } from '../../api/queries.ts'
import { useMe } from '../../app/gate.tsx'
import { TourOffer } from '../../app/tour-offer.tsx'
import { lazily } from '../../parts/lazily.tsx'
import { PageHead } from '../../parts/page-head.tsx'
import { Panel } from '../../parts/panel.tsx'
import { Empty, Failure, Loading, Stale } from '../../parts/states.tsx'
import { HomeFigures } from './home-figures.tsx'
import { FailedList, ProviderWaitList, RunningList, WaitingList } from './home-lists.tsx'
import classes from './home-page.module.css'
import type { Visits } from './last-here.ts'
import { ProjectRows } from './project-rows.tsx'
import { useLastHere } from './use-last-here.ts'

const NewProjectDialog = lazily(() => import('./new-project-dialog.tsx').then((module) => module.NewProjectDialog))
const route = getRouteApi('/')

export function HomePage() {
  const me = useMe()
  const navigate = useNavigate()
  const isMaking = route.useSearch().new === 'project' && me.instance_admin
  const visit = useLastHere(me.id)
  const projects = useQuery(projectsQuery)
  const home = useQuery(homeQuery(visit.since))
  const isStale = (projects.isError && projects.data !== undefined) || (home.isError && home.data !== undefined)
  const setIsMaking = (isOpen: boolean): void =>
    void navigate({ to: '/', search: isOpen ? { new: 'project' } : {}, replace: true })
  const again = (): void => {
    void projects.refetch()
    void home.refetch()
  }
  return (
    <>
      <PageHead name="Home" title={<Title order={1}>Home</Title>}>
        {me.instance_admin && (
          <Button
            size="xs"
            variant="default"
            leftSection={<Plus size={13} aria-hidden />}
            onClick={() => setIsMaking(true)}
          >
            New project
          </Button>
        )}
      </PageHead>
      {projects.isPending && <Loading lines={8} />}
      {projects.isError && !projects.data && (
        <Failure what="Your projects could not be read." error={projects.error} onRetry={again} />
      )}
      {isStale && <Stale onRetry={again} />}
      {projects.data?.items.length === 0 && (
        <Empty>
          {me.instance_admin
            ? 'There is no project yet. A project holds agents, flows and objects, and the people who may see them.'
            : 'You are in no project yet. Ask an admin to invite you.'}
        </Empty>
      )}
      {projects.data && projects.data.items.length > 0 && (
        <Stack gap="lg" className={classes.body ?? ''}>
          {home.isError && !home.data && (
            <Failure what="The state of your projects could not be read." error={home.error} onRetry={again} />
          )}
          <Overview projects={projects.data.items} home={home.data} visit={visit} />
        </Stack>
      )}
      {isMaking && (
        <Panel name="The form for a new project">
          <NewProjectDialog onClose={() => setIsMaking(false)} />
        </Panel>
      )}
    </>
  )
}

interface OverviewProps {
  projects: Project[]
  /** Undefined until it is read. */
  home: Home | undefined
  visit: Visits
}

function Overview({ projects, home, visit }: OverviewProps) {
  return (
    <>
      <TourOffer projects={projects} />
      <HomeFigures home={home} visit={visit} />
      <div className={classes.columns}>
        <WaitingList home={home} projects={projects} />
        <Stack gap="md">
          <RunningList home={home} projects={projects} />
          <ProviderWaitList home={home} projects={projects} />
        </Stack>
        <FailedList home={home} projects={projects} visit={visit} />
      </div>
      <ProjectRows projects={projects} home={home} />
    </>
  )
}
