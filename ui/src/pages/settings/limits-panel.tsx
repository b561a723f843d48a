// The off switch, the limits, and the project itself.
import { Button, Group, Text, TextInput } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useLocation, useNavigate } from '@tanstack/react-router'
import { OctagonX, Play } from 'lucide-react'
import { type RefObject, useEffect, useRef, useState } from 'react'
import type { Project } from '../../../../src/kernel/project.ts'
import { patch, post, remove } from '../../api/client.ts'
import { projectPath, projectsQuery } from '../../api/queries.ts'
import { projectQuery, settingsQuery } from '../../api/settings.ts'
import { useRole } from '../../app/role.ts'
import { Confirm, type Question } from '../../parts/confirm.tsx'
import { Problem } from '../../parts/problem.tsx'
import { Failure, Loading } from '../../parts/states.tsx'
import { tell, useWrite } from '../../parts/use-write.ts'
import { When } from '../../parts/when.tsx'
import { LimitsForm } from './limits-form.tsx'
import { Section } from './section.tsx'
import classes from './settings.module.css'

export function LimitsPanel({ projectId }: { projectId: string }) {
  const isAdmin = useRole(projectId) === 'admin'
  const project = useQuery(projectQuery(projectId))
  const settings = useQuery(settingsQuery(projectId))
  const error = settings.error ?? project.error
  if (project.isPending || settings.isPending) return <Loading lines={8} />
  if (!project.data || !settings.data) {
    return <Failure what="The limits could not be read." error={error} onRetry={() => void settings.refetch()} />
  }
  return (
    <>
      <LimitsForm projectId={projectId} settings={settings.data} isAdmin={isAdmin} />
      <OffSwitch project={project.data} isAdmin={isAdmin} />
      {isAdmin && <ItsName key={project.data.name} project={project.data} />}
    </>
  )
}

function useReread() {
  const client = useQueryClient()
  return (): Promise<void> => client.invalidateQueries({ queryKey: projectsQuery.queryKey })
}

const OFF_SWITCH = 'off-switch'

/** The place that an address names behind its #, brought into view once it is there. Its button takes the focus. */
function useShownByHash(id: string): RefObject<HTMLDivElement | null> {
  const place = useRef<HTMLDivElement>(null)
  const hash = useLocation({ select: (location) => location.hash })
  useEffect(() => {
    if (hash !== id) return
    place.current?.scrollIntoView({ block: 'center' })
    place.current?.querySelector('button')?.focus({ preventScroll: true })
  }, [hash, id])
  return place
}

function OffSwitch({ project, isAdmin }: { project: Project; isAdmin: boolean }) {
  const reread = useReread()
  const [question, setQuestion] = useState<Question | null>(null)
  const isHalted = project.halted_at !== null
  const place = useShownByHash(OFF_SWITCH)
  const ask = (): void =>
    setQuestion({
      title: isHalted ? `Unhalt ${project.name}?` : `Halt ${project.name}?`,
      text: isHalted
        ? 'Its runs go on where they stopped; agents and schedules work again.'
        : 'Every run stops at its next step, and what is started waits. Nothing is lost: it goes on when you unhalt it.',
      action: isHalted ? 'Unhalt project' : 'Halt project',
      isHarmless: isHalted,
      onYes: async () => {
        await post(projectPath(project.id, isHalted ? '/unhalt' : '/halt'))
        await reread()
        tell(isHalted ? 'The project goes on.' : 'The project is halted.')
      },
    })
  return (
    <Section name="Off switch">
      <div className={classes.danger} id={OFF_SWITCH} ref={place}>
        <Group justify="space-between">
          <Text size="sm" style={{ flex: '1 1 260px' }}>
            {isHalted ? (
              <>
                The project was halted <When at={project.halted_at} />. Nothing runs until it is unhalted.
              </>
            ) : (
              'Two seconds after the off switch no step of any work begins. Calls under way end, and nothing is lost.'
            )}
          </Text>
          {isAdmin && (
            <Button
              size="xs"
              variant={isHalted ? 'filled' : 'light'}
              color={isHalted ? 'indigo' : 'red'}
              leftSection={isHalted ? <Play size={13} aria-hidden /> : <OctagonX size={13} aria-hidden />}
              onClick={ask}
            >
              {isHalted ? 'Unhalt project' : 'Halt project'}
            </Button>
          )}
        </Group>
      </div>
      <Confirm question={question} onClose={() => setQuestion(null)} />
    </Section>
  )
}

function ItsName({ project }: { project: Project }) {
  const reread = useReread()
  const navigate = useNavigate()
  const { isBusy, problem, refused, write } = useWrite({ fields: ['name'] })
  const [name, setName] = useState(project.name)
  const [question, setQuestion] = useState<Question | null>(null)
  const save = (): void =>
    void write(async () => {
      await patch(projectPath(project.id), { name })
      await reread()
      tell('The name is changed.')
    })
  const askDelete = (): void =>
    setQuestion({
      title: `Delete ${project.name}?`,
      text: 'Its agents, runs, flows and objects are deleted with it. This cannot be taken back.',
      action: 'Delete project',
      onYes: async () => {
        await remove(projectPath(project.id))
        await navigate({ to: '/' })
        await reread()
        tell(`The project ${project.name} is deleted.`)
      },
    })
  return (
    <Section name="Project">
      <Problem text={problem} />
      <form
        onSubmit={(event) => {
          event.preventDefault()
          save()
        }}
      >
        <Group align={refused.name === undefined ? 'flex-end' : 'center'}>
          <TextInput
            label="Name"
            size="xs"
            w={260}
            required
            maxLength={200}
            value={name}
            error={refused.name}
            onChange={(event) => setName(event.currentTarget.value)}
          />
          <Button size="xs" variant="default" type="submit" loading={isBusy} disabled={name === project.name}>
            Rename
          </Button>
          <Button size="xs" variant="subtle" color="red" onClick={askDelete}>
            Delete project
          </Button>
        </Group>
      </form>
      <Confirm question={question} onClose={() => setQuestion(null)} />
    </Section>
  )
}
