// The input and the limits with which a flow is started, in every dialog that starts one.
import { Group, NumberInput, Textarea } from '@mantine/core'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { type FlowStart, startFlow } from '../api/flow-definitions.ts'
import { inputOf } from './flow-input.ts'
import { useWrite } from './use-write.ts'

interface Begin {
  input: string
  workers?: number | undefined
  timeoutMs?: number | undefined
}

/** What is typed into the fields, and the start itself, which leads to the page of the flow run. */
export function useFlowStart(projectId: string, begin: Begin) {
  const navigate = useNavigate()
  const { write, ...state } = useWrite()
  const [input, setInput] = useState(begin.input)
  const [workers, setWorkers] = useState<number | string>(begin.workers ?? '')
  const [seconds, setSeconds] = useState<number | string>(
    begin.timeoutMs === undefined ? '' : Math.ceil(begin.timeoutMs / 1_000),
  )
  const read = inputOf(input)
  const problem = 'problem' in read ? read.problem : null
  const start = async (what: FlowStart): Promise<void> => {
    const { id: flowRunId } = await startFlow(projectId, {
      ...what,
      ...read,
      ...(workers === '' ? {} : { workers: Number(workers) }),
      ...(seconds === '' ? {} : { timeout: Number(seconds) * 1_000 }),
    })
    // The editor keeps changes that are not saved as a draft, so nothing is lost here.
    await navigate({
      to: '/projects/$projectId/flows/$flowRunId',
      params: { projectId, flowRunId },
      ignoreBlocker: true,
    })
  }
  return {
    fields: {
      input,
      setInput,
      workers,
      setWorkers,
      seconds,
      setSeconds,
      problem,
      isAgain: begin.workers !== undefined,
    },
    problem,
    state,
    start: (what: FlowStart): void => void write(() => start(what)),
  }
}

type Fields = ReturnType<typeof useFlowStart>['fields']

export function FlowStartFields({ fields }: { fields: Fields }) {
  const { input, setInput, workers, setWorkers, seconds, setSeconds, problem, isAgain } = fields
  const asBefore = isAgain ? ' This is what the run before had.' : ''
  return (
    <>
      <Textarea
        label="Input"
        description="JSON, or a text. Empty: no input."
        classNames={{ input: 'mono' }}
        autosize
        minRows={4}
        maxRows={16}
        spellCheck={false}
        value={input}
        error={problem}
        onChange={(event) => setInput(event.currentTarget.value)}
        data-autofocus
      />
      <Group grow align="flex-start">
        <NumberInput
          label="Workers"
          description={`The most leaves under way at once. Empty: the default.${asBefore}`}
          min={1}
          max={10_000}
          allowDecimal={false}
          value={workers}
          onChange={setWorkers}
        />
        <NumberInput
          label="Timeout"
          description={`In seconds. Empty: the project's setting.${asBefore}`}
          min={1}
          allowDecimal={false}
          value={seconds}
          onChange={setSeconds}
        />
      </Group>
    </>
  )
}
