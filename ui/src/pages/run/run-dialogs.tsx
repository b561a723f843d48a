// Starting a run again: resumed with more room, forked from a step, or triggered with other input.

import { NumberInput, Textarea } from '@mantine/core'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import type { Run } from '../../../../src/kernel/run.ts'
import { startWork } from '../../api/client.ts'
import { inSeconds } from '../../api/issues.ts'
import { projectPath } from '../../api/queries.ts'
import { FormDialog } from '../../parts/form-dialog.tsx'
import { typedMs, typedNumber } from '../../parts/typed-number.ts'
import { useWrite } from '../../parts/use-write.ts'

export type Dialog = { type: 'resume' } | { type: 'fork'; step: number } | { type: 'trigger' }

export function RunDialog({ run, dialog, onClose }: { run: Run; dialog: Dialog; onClose: () => void }) {
  switch (dialog.type) {
    case 'resume':
      return <ResumeDialog run={run} onClose={onClose} />
    case 'fork':
      return (
        <InputDialog
          run={run}
          title={`Fork after step ${dialog.step}`}
          button="Fork"
          onClose={onClose}
          start={(input) => ({
            path: `/runs/${run.id}/fork`,
            body: { after_step: dialog.step, ...(input === '' ? {} : { input }) },
          })}
          initial=""
          hint="Leave it empty to go on as the run did."
        />
      )
    case 'trigger':
      return (
        <InputDialog
          run={run}
          title="Trigger again"
          button="Trigger"
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

function ResumeDialog({ run, onClose }: { run: Run; onClose: () => void }) {
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
      <NumberInput
        label="Step limit"
        description="Of the new run alone. Empty: the agent's own."
        min={1}
        value={steps}
        error={start.refused.max_steps}
        onChange={setSteps}
      />
      <NumberInput
        label="Timeout"
        description="In seconds. Empty: the agent's own."
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
  onClose: () => void
  start: (input: unknown) => { path: string; body: object }
}) {
  const [input, setInput] = useState(props.initial)
  const start = useStart(props.run)
  return (
    <FormDialog
      title={props.title}
      action={props.button}
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
