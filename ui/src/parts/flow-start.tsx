// The input and the limits with which a flow is started, in every dialog that starts one.

import { Group, NumberInput, Textarea } from '@mantine/core'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { type FlowStart, startFlow } from '../api/flow-definitions.ts'
import { inSeconds } from '../api/issues.ts'
import { inputOf } from './flow-input.ts'
import { typedMs, typedNumber } from './typed-number.ts'
import { useWrite } from './use-write.ts'

interface InitialFields {
  input: string
  workers?: number | undefined
  seconds?: number | undefined
}

/** Holds the fields of the dialog, and starts the flow: the start leads to the page of the flow run. */
export function useFlowStart(projectId: string, begin: InitialFields) {
  const navigate = useNavigate()
  const { write, ...state } = useWrite({ fields: ['workers', 'timeout'] })
  const [input, setInput] = useState(begin.input)
  const [workers, setWorkers] = useState<number | string>(begin.workers ?? '')
  const [seconds, setSeconds] = useState<number | string>(begin.seconds ?? '')
  const read = inputOf(input)
  const problem = 'problem' in read ? read.problem : null
  const start = async (what: FlowStart): Promise<void> => {
    const { id: flowRunId } = await startFlow(projectId, {
      ...what,
      ...read,
      ...(workers === '' ? {} : { workers: typedNumber(workers) }),
      ...(seconds === '' ? {} : { timeout: typedMs(seconds) }),
    })
    // The editor keeps unsaved changes in a draft, so nothing is lost here.
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
      begin,
      refused: state.refused,
    },
    problem,
    state,
    start: (what: FlowStart): void => void write(() => start(what)),
  }
}

type Fields = ReturnType<typeof useFlowStart>['fields']

export function FlowStartFields({ fields }: { fields: Fields }) {
  const { input, setInput, workers, setWorkers, seconds, setSeconds, problem, begin, refused } = fields
  const before = (value: number | undefined, unit = ''): string =>
    value === undefined ? '' : ` The run before had ${value}${unit}.`
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
          description={`The most leaves under way at once. Empty: the default.${before(begin.workers)}`}
          min={1}
          max={10_000}
          value={workers}
          error={refused.workers}
          onChange={setWorkers}
        />
        <NumberInput
          label="Timeout"
          description={`In seconds. Empty: the project's setting.${before(begin.seconds, ' s')}`}
          min={1}
          value={seconds}
          error={inSeconds(refused.timeout ?? '')}
          onChange={setSeconds}
        />
      </Group>
    </>
  )
}
