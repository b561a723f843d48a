// Home lists what waits for me, what failed, what runs and what today cost, over all my projects.
import { Button, Stack, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { Plus } from 'lucide-react'
import { useMemo, useState } from 'react'
import type { Project } from '../../../../src/kernel/project.ts'
import { projectsQuery } from '../../api/queries.ts'
import { useMe } from '../../app/gate.tsx'
import { TourOffer } from '../../app/tour-offer.tsx'
import { lazily } from '../../parts/lazily.tsx'
import { PageHead } from '../../parts/page-head.tsx'
import { Panel } from '../../parts/panel.tsx'
import { Empty, Failure, Loading, Stale } from '../../parts/states.tsx'
import { type Coverage, isPart, READ_AT_FIRST } from './coverage.ts'
import { HomeFigures } from './home-figures.tsx'
import { FailedList, RunningList, WaitingList } from './home-lists.tsx'
import classes from './home-page.module.css'
import { ProjectRows } from './project-rows.tsx'
import { useHome } from './use-home.ts'
import { useLastHere } from './use-last-here.ts'

const NewProjectDialog = lazily(() => import('./new-project-dialog.tsx').then((module) => module.NewProjectDialog))
const route = getRouteApi('/')

export function HomePage() {
  const me = useMe()
  const navigate = useNavigate()
  const isMaking = route.useSearch().new === 'project' && me.instance_admin
  const projects = useQuery(projectsQuery)
  const setIsMaking = (isOpen: boolean): void =>
    void navigate({ to: '/', search: isOpen ? { new: 'project' } : {}, replace: true })
  const again = (): void => void projects.refetch()
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
      {projects.isError && projects.data && <Stale onRetry={again} />}
      {projects.data?.items.length === 0 && (
        <Empty>
          {me.instance_admin
            ? 'There is no project yet. A project holds agents, flows and objects, and the people who may see them.'
            : 'You are in no project yet. Ask an admin to invite you.'}
        </Empty>
      )}
      {projects.data && projects.data.items.length > 0 && (
        <Overview projects={projects.data.items} hasMore={projects.data.next_cursor !== null} />
      )}
      {isMaking && (
        <Panel name="The form for a new project">
          <NewProjectDialog onClose={() => setIsMaking(false)} />
        </Panel>
      )}
    </>
  )
}

/** `hasMore`: there are more projects than these. */
function Overview({ projects, hasMore }: { projects: Project[]; hasMore: boolean }) {
  const me = useMe()
  const visit = useLastHere(me.id)
  const [most, setMost] = useState(READ_AT_FIRST)
  const wanted = useMemo(() => projects.slice(0, most), [projects, most])
  const news = useHome(wanted, visit.since)
  const read = news.filter(({ isPending }) => !isPending).length
  const coverage: Coverage = { read, wanted: wanted.length, all: projects.length, hasMore }
  const lists = { news, isPart: isPart(coverage) }
  const failing = news.filter(({ error }) => error !== null)
  return (
    <Stack gap="lg" className={classes.body ?? ''}>
      {failing.length > 0 && <Stale onRetry={() => failing.forEach(({ retry }) => void retry())} />}
      <TourOffer projects={projects} />
      <HomeFigures news={news} visit={visit} coverage={coverage} onRead={setMost} />
      <div className={classes.columns}>
        <WaitingList {...lists} />
        <RunningList {...lists} />
        <FailedList {...lists} visit={visit} />
      </div>
      <ProjectRows projects={projects} news={news} />
    </Stack>
  )
}
