// The transcript of a run, oldest first: the text of each step with its tool calls.
import { Button, Text } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import { GitFork } from 'lucide-react'
import type { Run } from '../../../../src/kernel/run.ts'
import type { ModelStep, Step, ToolStep } from '../../api/shapes.ts'
import { duration, tokens } from '../../parts/figures.ts'
import { lazily } from '../../parts/lazily.tsx'
import { Panel } from '../../parts/panel.tsx'
import { Value } from '../../parts/value.tsx'
import type { LiveStep } from './live-text.ts'
import { ToolCard } from './tool-card.tsx'
import classes from './transcript.module.css'

const ModelText = lazily(() => import('../../parts/markdown.tsx').then((module) => module.ModelText))

interface Props {
  run: Run
  steps: readonly Step[]
  live: LiveStep | null
  /** Null: the person may not fork. */
  onFork: ((step: number) => void) | null
}

export function Transcript({ run, steps, live, onFork }: Props) {
  const models = steps.filter((step) => step.kind === 'model')
  const flow = steps.find((step) => step.kind === 'flow')
  const isNew = live !== null && !models.some(({ step }) => step === live.step)
  return (
    <ol className={classes.list} aria-label="Transcript">
      <li className={classes.step}>
        <StepHead name="Input" />
        <InputOf run={run} />
      </li>
      {models.map((step) => (
        <Said
          key={step.seq}
          step={step}
          isSummary={step === models.at(-1) && isWoundDown(run) && step.text === run.summary}
          calls={steps.filter((each) => each.kind === 'tool' && each.step === step.step) as ToolStep[]}
          onFork={onFork}
          projectId={run.project_id}
          pending={pendingWords(run)}
          isDecided={run.resumed_as !== null}
        />
      ))}
      {flow && (
        <li className={classes.step}>
          <StepHead name="Flow" note={duration(flow.duration)} />
          <Link
            to="/projects/$projectId/flows/$flowRunId"
            params={{ projectId: run.project_id, flowRunId: flow.flow_run_id }}
          >
            Open its flow run
          </Link>
        </li>
      )}
      {isNew && (
        <li className={classes.step} aria-live="off">
          <StepHead name={`Step ${live.step}`} note="writing" />
          <div className={classes.live}>{live.text}</div>
        </li>
      )}
    </ol>
  )
}

function InputOf({ run: { project_id: projectId, input, resumed_from: runId } }: { run: Run }) {
  if (typeof input === 'string') return <Text className={classes.said}>{input}</Text>
  if (input !== null || runId === null) return <Value of={input} />
  return (
    <Text className="dim">
      None of its own: it continues{' '}
      <Link to="/projects/$projectId/runs/$runId" params={{ projectId, runId }}>
        the run before it
      </Link>
      .
    </Text>
  )
}

/** A run that meets one of these limits is asked once more, for a summary. */
const isWoundDown = ({ pause_reason: reason }: Run): boolean => reason === 'step_limit' || reason === 'timeout'

interface SaidProps {
  step: ModelStep
  /** True: the limit was met before this step, and the model was only asked for a summary. */
  isSummary: boolean
  calls: ToolStep[]
  onFork: Props['onFork']
  projectId: string
  pending: string
  isDecided: boolean
}

/** The words of a call without a result. */
function pendingWords({ completed_at: endedAt, waiting_for: awaited }: Run): string {
  if (endedAt !== null) return 'no result'
  if (awaited === 'approval') return 'waits for approval'
  return awaited === 'person' ? 'waits for a person' : 'running'
}

function Said({ step, isSummary, calls, onFork, projectId, pending, isDecided }: SaidProps) {
  const used = tokens(step.usage.input_tokens + step.usage.output_tokens)
  return (
    <li className={classes.step} id={`step-${step.step}`}>
      <StepHead
        name={`Step ${step.step}${isSummary ? ', the summary' : ''}`}
        note={`${duration(step.duration)} · ${used} tokens`}
      >
        {onFork && (
          <Button
            size="compact-xs"
            variant="subtle"
            color="gray"
            leftSection={<GitFork size={12} aria-hidden />}
            aria-label={`Fork from here, after step ${step.step}`}
            onClick={() => onFork(step.step)}
          >
            Fork from here
          </Button>
        )}
      </StepHead>
      {step.text !== '' && (
        <Panel name="The text">
          <ModelText>{step.text}</ModelText>
        </Panel>
      )}
      {calls.map((call) => (
        <ToolCard key={`${call.seq} ${call.call_id}`} call={call} projectId={projectId} isDecided={isDecided} />
      ))}
      {step.tool_calls
        .filter(({ id }) => !calls.some(({ call_id }) => call_id === id))
        .map(({ id, name, args }) => (
          <ToolCard key={id} call={{ name, args }} projectId={projectId} pending={pending} />
        ))}
    </li>
  )
}

function StepHead({ name, note, children }: { name: string; note?: string; children?: React.ReactNode }) {
  return (
    <div className={classes.head}>
      <span className={classes.name}>{name}</span>
      {note && <span className="dim number">{note}</span>}
      <span className={classes.actions}>{children}</span>
    </div>
  )
}
