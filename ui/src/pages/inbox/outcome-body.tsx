// A call whose outcome nobody knows: a person looks and says which.
import { Button, Group } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import type { RunEffect } from '../../../../src/kernel/run.ts'
import type { Task } from '../../../../src/kernel/task.ts'
import { effectsQuery } from '../../api/queries.ts'
import { Prose } from '../../parts/prose.tsx'
import classes from './inbox.module.css'
import type { CardProps } from './inbox-card.tsx'
import { MadeCalls } from './made-calls.tsx'

export function OutcomeBody(props: CardProps & { mayDecide: boolean }) {
  const { projectId, task, isOpen, mayDecide, decisions } = props
  const { data: effects } = useQuery({
    ...effectsQuery(projectId, task.run_id ?? ''),
    enabled: isOpen && task.run_id !== null,
  })
  if (!isOpen) return null
  const isBusy = decisions.busy.has(task.id)
  const say = (result: 'done' | 'not_done', said: string): void =>
    void decisions.settle(task, { status: 'completed', result }, said)
  return (
    <>
      <About task={task} effects={effects?.items ?? []} />
      {mayDecide && (
        <Group gap="xs" className={classes.decide ?? ''}>
          <Button
            size="xs"
            variant="default"
            loading={isBusy}
            onClick={() => say('done', 'It was recorded that the call was done.')}
          >
            It was done
          </Button>
          <Button
            size="xs"
            variant="default"
            loading={isBusy}
            onClick={() => say('not_done', 'It was recorded that the call was not done.')}
          >
            It was not done
          </Button>
        </Group>
      )}
    </>
  )
}

/** The description is for callers of the API too: its JSON is shown as a table, and the buttons stand for its last words. */
function About({ task, effects }: { task: Task; effects: readonly RunEffect[] }) {
  const isAsked = ({ outcome, call_id: id }: RunEffect): boolean =>
    outcome === 'unknown' && id === task.metadata.call_id
  const asked = effects.filter(isAsked).slice(-1)
  const made = effects.filter(({ outcome }) => outcome === 'finished')
  if (asked.length === 0) return <Prose>{task.description}</Prose>
  const [why = ''] = task.description.split('\n')
  return (
    <>
      <Prose>{why}</Prose>
      <MadeCalls of={asked.map(toShown)} name="The call" />
      {made.length > 0 && (
        <details>
          <summary>
            {made.length === 1 ? '1 other call' : `${made.length} other calls`} of this work took effect
          </summary>
          <MadeCalls of={made.map(toShown)} name="Other calls" />
        </details>
      )}
      <p>Check whether it took effect, then choose. {task.description.split('\n').at(-1)}</p>
    </>
  )
}

const toShown = ({ tool, args, result, key, at, outcome }: RunEffect) => ({
  ...{ tool, args, result, key, at },
  isFinished: outcome === 'finished',
})
