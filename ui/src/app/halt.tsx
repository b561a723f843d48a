// A halted project says so on each of its pages, and an admin can lift the halt there.
import { Button, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useParams } from '@tanstack/react-router'
import { OctagonX } from 'lucide-react'
import { post } from '../api/client.ts'
import { projectPath, projectsQuery } from '../api/queries.ts'
import { projectQuery } from '../api/settings.ts'
import { useWrite } from '../parts/use-write.ts'
import { useRole } from './role.ts'
import classes from './shell.module.css'

/** The stream of changes does not tell of a halt, so the project is read again while a page is open. */
const LOOK_EVERY_MS = 10_000
const LOOK_WHILE_HALTED_MS = 2_000

/** True while the project is halted; false also while that is not known. */
export function useIsHalted(projectId: string | undefined): boolean {
  const project = useQuery({
    ...projectQuery(projectId ?? ''),
    enabled: projectId !== undefined,
    refetchInterval: ({ state }) =>
      state.data && state.data.halted_at !== null ? LOOK_WHILE_HALTED_MS : LOOK_EVERY_MS,
  })
  return project.data !== undefined && project.data.halted_at !== null
}

export function Halt() {
  const { projectId } = useParams({ strict: false })
  const isHalted = useIsHalted(projectId)
  if (projectId === undefined || !isHalted) return null
  return (
    <div role="status" aria-label="Halt" className={classes.halt}>
      <OctagonX size={14} aria-hidden />
      <Text size="sm">This project is halted: no new step begins in it.</Text>
      <Unhalt projectId={projectId} />
    </div>
  )
}

function Unhalt({ projectId }: { projectId: string }) {
  const isAdmin = useRole(projectId) === 'admin'
  const { write, isBusy } = useWrite({ reads: [projectsQuery.queryKey], isToldAside: true })
  if (!isAdmin) return null
  return (
    <Button
      size="compact-xs"
      variant="default"
      loading={isBusy}
      onClick={() => void write(() => post(projectPath(projectId, '/unhalt')), 'The project goes on.')}
    >
      Unhalt project
    </Button>
  )
}
