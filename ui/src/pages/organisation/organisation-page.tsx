// The tree of the agents, with their status and their work.
import { Button, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { Plus } from 'lucide-react'
import { useState } from 'react'
import { everyAgent, orgQuery } from '../../api/organisation.ts'
import { useRole } from '../../app/role.ts'
import { PageHead } from '../../parts/page-head.tsx'
import { Panel } from '../../parts/panel.tsx'
import { Empty, Failure, Loading, Stale } from '../../parts/states.tsx'
import { AgentPanel } from './agent-panel.tsx'
import { NewTaskDialog } from './new-task-dialog.tsx'
import { OrgTree } from './org-tree.tsx'
import classes from './organisation.module.css'
import { TaskDrawer } from './task-drawer.tsx'
import { WholePanel } from './whole-panel.tsx'

const ROUTE = '/projects/$projectId/organisation'
const route = getRouteApi(ROUTE)

export function OrganisationPage() {
  const { projectId } = route.useParams()
  const { agent: agentId, tab, task: taskId } = route.useSearch()
  const mayWork = useRole(projectId) !== 'viewer'
  const go = useGo(projectId)
  const [isNew, setIsNew] = useState(false)
  const org = useQuery(orgQuery(projectId))
  const agents = everyAgent(org.data ?? [])
  const chosen = agents.find(({ id }) => id === agentId)
  const openTask = (id: string): void => go({ agent: agentId, tab, task: id })
  return (
    <>
      <PageHead name="Organisation" title={<Title order={1}>Organisation</Title>}>
        {mayWork && org.data && (
          <Button size="xs" leftSection={<Plus size={13} aria-hidden />} onClick={() => setIsNew(true)}>
            New task
          </Button>
        )}
      </PageHead>
      {org.isError && org.data && <Stale onRetry={() => void org.refetch()} />}
      {org.isPending && <Loading lines={10} />}
      {org.isError && !org.data && (
        <Failure what="The organisation could not be read." error={org.error} onRetry={() => void org.refetch()} />
      )}
      {org.data?.length === 0 && (
        <Empty>This project has no agents yet. Make one under Agents, and it appears here.</Empty>
      )}
      {org.data && org.data.length > 0 && (
        <div className={classes.columns}>
          <OrgTree projectId={projectId} tree={org.data} chosen={agentId} onChoose={(id) => go({ agent: id, tab })} />
          <section className={classes.panel} aria-label={chosen?.name ?? 'Whole organisation'}>
            <Panel key={chosen?.id ?? 'all'} name="This panel">
              {chosen ? (
                <AgentPanel
                  projectId={projectId}
                  agent={chosen}
                  tab={tab}
                  onTab={(next) => go({ agent: chosen.id, tab: next })}
                  onTask={openTask}
                  onClose={() => go({})}
                />
              ) : (
                <>
                  {agentId && <p className={classes.amber}>The agent of this address does not exist any more.</p>}
                  <WholePanel projectId={projectId} agents={agents} onTask={openTask} />
                </>
              )}
            </Panel>
          </section>
        </div>
      )}
      {taskId !== undefined && (
        <TaskDrawer
          key={taskId}
          projectId={projectId}
          taskId={taskId}
          agents={agents}
          onTask={openTask}
          onClose={() => go({ agent: agentId, tab })}
        />
      )}
      {isNew && (
        <NewTaskDialog
          projectId={projectId}
          agents={agents}
          initialAgent={chosen?.id ?? null}
          onClose={() => setIsNew(false)}
          onMade={(task) => {
            setIsNew(false)
            go({ agent: task.assigned_to ?? undefined, tab, task: task.id })
          }}
        />
      )}
    </>
  )
}

interface Place {
  agent?: string | undefined
  tab?: string | undefined
  task?: string | undefined
}

function useGo(projectId: string): (place: Place) => void {
  const navigate = useNavigate()
  return (place) => {
    const given = Object.entries(place).filter(([, value]) => value !== undefined)
    void navigate({ to: ROUTE, params: { projectId }, search: Object.fromEntries(given), resetScroll: false })
  }
}
