// Starting a run again: resumed with more room, begun anew, forked from a step, or triggered with other input. Calls that
// would be made a second time are named before anything starts.

import { NumberInput, Text, Textarea } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import type { Run, RunEffects } from '../../../../src/kernel/run.ts'
import { startWork } from '../../api/client.ts'
import { inSeconds } from '../../api/issues.ts'
import { effectsQuery, firstInputQuery, projectPath } from '../../api/queries.ts'
import type { Step } from '../../api/shapes.ts'
import { FormDialog } from '../../parts/form-dialog.tsx'
import { typedMs, typedNumber } from '../../parts/typed-number.ts'
import { useWrite } from '../../parts/use-write.ts'
import { MayRepeat } from './effect-list.tsx'
import { effectsAfter, resumeSentence } from './effect-words.ts'

export type Dialog = { type: 'resume' } | { type: 'again' } | { type: 'fork'; step: number } | { type: 'trigger' }

interface Props {
  run: Run
  dialog: Dialog
  /** The steps of the run, to tell which calls come after the step of a fork. */
  steps: readonly Step[]
  onClose: () => void
}

export function RunDialog({ run, dialog, steps, onClose }: Props) {
  const { data: effects } = useQuery(effectsQuery(run.project_id, run.id))
  switch (dialog.type) {
    case 'resume':
      return <ResumeDialog run={run} effects={effects} onClose={onClose} />
    case 'again':
      return <AgainDialog run={run} effects={effects} onClose={onClose} />
    case 'fork':
      return (
        <InputDialog
          run={run}
          title={`Fork after step ${dialog.step}`}
          button="Fork"
          effects={effects && { ...effects, items: effectsAfter(effects.items, steps, dialog.step) }}
          onClose={onClose}
          start={(input) => ({
            path: `/runs/${run.id}/fork`,
            body: { after_step: dialog.step, ...(input === '' ? {} : { input }) },
          })}
          initial=""
          hint="Leave it empty to continue as the run did."
        />
      )
    case 'trigger':
      return (
        <InputDialog
          run={run}
          title="Trigger again"
          button="Trigger"
          effects={effects}
          onClose={onClose}
          start={(input) => ({
            path: `/agents/${run.agent_id}/trigger`,
            body: { input },
          })}
          initial={
            typeof run.input === 'string' ? run.input : run.input === null ? '' : JSON.stringify(run.input, null, 2)
          }
        />
      )
  }
}

/** Undefined while they are not read: nothing is started before people can see them. */
type KnownEffects = Pick<RunEffects, 'items' | 'truncated'> | undefined

/** A new run with the same input, which knows nothing of this one. */
function AgainDialog({ run, effects, onClose }: { run: Run; effects: KnownEffects; onClose: () => void }) {
  const first = useQuery(firstInputQuery(run.project_id, run))
  const start = useStart(run)
  const isRead = effects !== undefined && first.data !== undefined
  return (
    <FormDialog
      title="Start again from the beginning?"
      action="Start again"
      isDestructive={effects !== undefined && effects.items.length > 0}
      isDisabled={!isRead}
      write={start}
      onClose={onClose}
      onSubmit={() => start.go(`/agents/${run.agent_id}/trigger`, { input: first.data ?? '' })}
    >
      <Text size="sm">
        A new run begins with the same input and knows nothing of this one.
        {effects?.items.length === 0 && ' No call of this run took effect.'}
      </Text>
      {effects && <MayRepeat of={effects} />}
    </FormDialog>
  )
}

function ResumeDialog({ run, effects, onClose }: { run: Run; effects: KnownEffects; onClose: () => void }) {
  const [steps, setSteps] = useState<number | string>(
    run.pause_reason === 'step_limit' ? Math.max(10, 2 * (run.max_steps ?? 0)) : '',
  )
  const [seconds, setSeconds] = useState<number | string>(
    run.pause_reason === 'timeout' ? (run.timeout ?? 60_000) / 1_000 : '',
  )
  const start = useStart(run)
  return (
    <FormDialog
      title="Resume"
      action="Resume"
      write={start}
      onClose={onClose}
      onSubmit={() =>
        start.go(`/runs/${run.id}/resume`, {
          ...(steps === '' ? {} : { max_steps: typedNumber(steps) }),
          ...(seconds === '' ? {} : { timeout: typedMs(seconds) }),
        })
      }
    >
      {effects && <Text size="sm">{resumeSentence(run, effects)}</Text>}
      <NumberInput
        label="Step limit"
        description="For the new run only. Leave empty to use the agent's limit."
        min={1}
        value={steps}
        error={start.refused.max_steps}
        onChange={setSteps}
      />
      <NumberInput
        label="Timeout"
        description="In seconds, for the new run only. Leave empty to use the agent's limit."
        min={1}
        value={seconds}
        error={inSeconds(start.refused.timeout ?? '')}
        onChange={setSeconds}
      />
    </FormDialog>
  )
}

function InputDialog(props: {
  run: Run
  title: string
  button: string
  initial: string
  hint?: string
  effects: KnownEffects
  onClose: () => void
  start: (input: unknown) => { path: string; body: object }
}) {
  const [input, setInput] = useState(props.initial)
  const start = useStart(props.run)
  return (
    <FormDialog
      title={props.title}
      action={props.button}
      isDisabled={props.effects === undefined}
      write={start}
      onClose={props.onClose}
      onSubmit={() => {
        const { path, body } = props.start(typeof props.run.input === 'string' ? input : asGiven(input))
        start.go(path, body)
      }}
    >
      <Textarea
        label="Input"
        description={props.hint}
        autosize
        minRows={3}
        maxRows={14}
        value={input}
        onChange={(event) => setInput(event.currentTarget.value)}
        data-autofocus
      />
      {props.effects && <MayRepeat of={props.effects} />}
    </FormDialog>
  )
}

/** JSON where the text is JSON of an object, else the text. */
function asGiven(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : text
  } catch {
    return text
  }
}

/** Starts the new run, and leads to its page. */
function useStart(run: Run) {
  const navigate = useNavigate()
  const { write, isBusy, problem, refused } = useWrite({ fields: ['max_steps', 'timeout'] })
  const go = (path: string, body: object): void =>
    void write(async () => {
      const { id } = await startWork<Run>(projectPath(run.project_id, path), body)
      await navigate({ to: '/projects/$projectId/runs/$runId', params: { projectId: run.project_id, runId: id } })
    })
  return { go, isBusy, problem, refused }
}
