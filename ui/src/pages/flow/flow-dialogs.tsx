// Changing a flow run: more workers, more time, another topology or its end while it runs; Resume after it.

import { NumberInput, Select, Text } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import type { FlowRun } from '../../../../src/kernel/flow-run.ts'
import { patch, post, startWork } from '../../api/client.ts'
import { type FlowTopology, flowRunPath } from '../../api/flows.ts'
import { inSeconds } from '../../api/issues.ts'
import { Confirm } from '../../parts/confirm.tsx'
import { duration } from '../../parts/figures.ts'
import { FormDialog } from '../../parts/form-dialog.tsx'
import { typedMs, typedNumber } from '../../parts/typed-number.ts'
import { tell, useWrite } from '../../parts/use-write.ts'

export type FlowDialogType = 'cancel' | 'resume' | 'workers' | 'topology' | 'timeout'

interface Props {
  projectId: string
  run: FlowRun
  topology: FlowTopology | undefined
  onClose: () => void
}

export function FlowDialog({ type, ...props }: Props & { type: FlowDialogType }) {
  switch (type) {
    case 'cancel':
      return <CancelDialog {...props} />
    case 'resume':
      return <ResumeDialog {...props} />
    case 'workers':
      return <WorkersDialog {...props} />
    case 'topology':
      return <TopologyDialog {...props} />
    case 'timeout':
      return <TimeoutDialog {...props} />
  }
}

/** The queries of everything about the run. */
export const readsOf = (projectId: string, flowRunId: string): string[][] => [
  ['flow_run', projectId],
  ['flow_facts', projectId, flowRunId],
  ['alert', projectId],
]

function CancelDialog({ projectId, run, onClose }: Props) {
  const client = useQueryClient()
  const question = {
    title: 'Cancel this flow run?',
    text: 'No new task begins. Tasks under way may end, and their results are kept.',
    action: 'Cancel the flow',
    refusal: 'Keep it running',
    onYes: async () => {
      await post(flowRunPath(projectId, run.id, '/cancel'))
      await Promise.all(readsOf(projectId, run.id).map((queryKey) => client.invalidateQueries({ queryKey })))
      tell('The flow run is being cancelled.')
    },
  }
  return <Confirm question={question} onClose={onClose} />
}

/** A new flow run takes over the finished tasks and begins the others. */
function ResumeDialog({ projectId, run, onClose }: Props) {
  const [seconds, setSeconds] = useState<number | string>('')
  const navigate = useNavigate()
  const { write, ...state } = useWrite({ reads: readsOf(projectId, run.id), fields: ['timeout'] })
  const { completed, total } = run.progress
  const resume = (): void =>
    void write(async () => {
      const body = seconds === '' ? {} : { timeout: typedMs(seconds) }
      const { id } = await startWork<FlowRun>(flowRunPath(projectId, run.id, '/resume'), body)
      await navigate({ to: '/projects/$projectId/flows/$flowRunId', params: { projectId, flowRunId: id } })
    })
  return (
    <FormDialog title="Resume" action="Resume" onClose={onClose} write={state} onSubmit={resume}>
      <Text size="sm">
        {completed} of {total} {total === 1 ? 'task' : 'tasks'} {completed === 1 ? 'is' : 'are'} finished. A new flow
        run takes over what is finished and begins the rest.
      </Text>
      <NumberInput
        label="Timeout"
        description={`In seconds. Empty: ${duration(run.timeout)}, as before.`}
        min={1}
        value={seconds}
        error={inSeconds(state.refused.timeout ?? '')}
        onChange={setSeconds}
        data-autofocus
      />
    </FormDialog>
  )
}

const MOST_AT_ONCE = 10

function WorkersDialog({ projectId, run, onClose }: Props) {
  const [add, setAdd] = useState<number | string>(Math.min(run.workers, MOST_AT_ONCE))
  const { write, ...state } = useWrite({ reads: readsOf(projectId, run.id), fields: ['add'] })
  const save = async (): Promise<void> => {
    const isDone = await write(
      () => post<FlowRun>(flowRunPath(projectId, run.id, '/workers'), { add: typedNumber(add) }),
      ({ workers }) => `The flow run has ${workers} workers.`,
    )
    if (isDone) onClose()
  }
  return (
    <FormDialog
      title="Add workers"
      action="Add workers"
      isDisabled={add === ''}
      onClose={onClose}
      write={state}
      onSubmit={() => void save()}
    >
      <NumberInput
        label="Workers"
        description={`Tasks under way at once: at most ${run.workers} so far. This many are added.`}
        min={1}
        value={add}
        error={state.refused.add}
        onChange={setAdd}
        data-autofocus
      />
    </FormDialog>
  )
}

function TimeoutDialog({ projectId, run, onClose }: Props) {
  const [seconds, setSeconds] = useState<number | string>(Math.ceil(run.timeout / 1_000))
  const { write, ...state } = useWrite({ reads: readsOf(projectId, run.id), fields: ['timeout'] })
  const save = async (): Promise<void> => {
    const isDone = await write(
      () => patch<FlowRun>(flowRunPath(projectId, run.id), { timeout: typedMs(seconds) }),
      ({ timeout }) => `The flow run may take ${duration(timeout)} in all.`,
    )
    if (isDone) onClose()
  }
  return (
    <FormDialog
      title="Change the timeout"
      action="Save"
      isDisabled={seconds === ''}
      onClose={onClose}
      write={state}
      onSubmit={() => void save()}
    >
      <NumberInput
        label="Timeout"
        description="In seconds, from the start of the flow run."
        min={1}
        value={seconds}
        error={inSeconds(state.refused.timeout ?? '')}
        onChange={setSeconds}
        data-autofocus
      />
    </FormDialog>
  )
}

const ALWAYS = ['hierarchical', 'mesh', 'star'] as const

function TopologyDialog({ projectId, run, topology, onClose }: Props) {
  const isCustomKnown =
    topology?.current === 'custom' || topology?.history.some(({ from, to }) => [from, to].includes('custom'))
  const others = [...ALWAYS, ...(isCustomKnown ? (['custom'] as const) : [])].filter(
    (each) => each !== topology?.current,
  )
  const [wanted, setWanted] = useState<string>(topology?.recommendation?.topology ?? others[0] ?? 'mesh')
  const { write, ...state } = useWrite({ reads: readsOf(projectId, run.id) })
  const save = async (): Promise<void> => {
    const isDone = await write(
      () => post<FlowTopology>(flowRunPath(projectId, run.id, '/topology'), { topology: wanted }),
      ({ current }) => (current === wanted ? `The topology is ${wanted}.` : 'The switch will come into force soon.'),
    )
    if (isDone) onClose()
  }
  return (
    <FormDialog
      title="Switch topology"
      action="Switch topology"
      onClose={onClose}
      write={state}
      onSubmit={() => void save()}
    >
      <Select
        label="Topology"
        description={`It is ${topology?.current} now. No task is lost: waiting tasks are dealt anew.`}
        data={others.includes(wanted as (typeof others)[number]) ? others : [...others, wanted]}
        allowDeselect={false}
        value={wanted}
        onChange={(value) => value && setWanted(value)}
        data-autofocus
      />
      {topology?.recommendation && <Text size="sm">{topology.recommendation.reason}</Text>}
    </FormDialog>
  )
}
