// Parts of a layout that people use, and the chart, whose library is large.
import { Button, Select, Textarea, TextInput, Title } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import type { OfType, openTargets } from '../../../../src/kernel/genui.ts'
import { lazily } from '../../parts/lazily.tsx'
import { Panel } from '../../parts/panel.tsx'
import classes from './genui.module.css'
import { useLayoutState } from './genui-state.ts'

const Chart = lazily(() => import('./genui-chart.tsx').then((module) => module.Chart))

const NEEDED = 'Fill this in first.'

export function InputPart({ of }: { of: OfType<'input'> }) {
  const { values, missing, setValue } = useLayoutState()
  const field = {
    label: of.label,
    ...(of.placeholder !== undefined && { placeholder: of.placeholder }),
    value: values.get(of.id) ?? '',
    error: missing === of.id ? NEEDED : undefined,
    withAsterisk: of.required === true,
  }
  return of.multiline ? (
    <Textarea {...field} autosize minRows={2} onChange={(event) => setValue(of.id, event.currentTarget.value)} />
  ) : (
    <TextInput {...field} onChange={(event) => setValue(of.id, event.currentTarget.value)} />
  )
}

export function SelectPart({ of }: { of: OfType<'select'> }) {
  const { values, missing, setValue } = useLayoutState()
  return (
    <Select
      label={of.label}
      data={of.options}
      value={values.get(of.id) ?? null}
      error={missing === of.id ? NEEDED : undefined}
      withAsterisk={of.required === true}
      onChange={(value) => setValue(of.id, value ?? '')}
    />
  )
}

const EMPHASIS = { primary: {}, danger: { color: 'red' }, plain: { variant: 'default' } }

export function ButtonPart({ of: { label, action, emphasis = 'plain' } }: { of: OfType<'button'> }) {
  const { act, isBusy } = useLayoutState()
  if (action.type === 'open') {
    return (
      <div>
        <OpenLink target={action.target} id={action.id}>
          {label}
        </OpenLink>
      </div>
    )
  }
  return (
    <div>
      <Button size="xs" loading={isBusy} onClick={() => act(action)} {...EMPHASIS[emphasis]}>
        {label}
      </Button>
    </div>
  )
}

interface OpenProps {
  target: (typeof openTargets)[number]
  id: string
  children: ReactNode
}

/** A link to the page of a task, run, eval or object. */
export function OpenLink({ target, id, children }: OpenProps) {
  const { projectId } = useLayoutState()
  switch (target) {
    case 'task':
      return (
        <Link to="/projects/$projectId/inbox" params={{ projectId }} search={{ item: id }}>
          {children}
        </Link>
      )
    case 'run':
      return (
        <Link to="/projects/$projectId/runs/$runId" params={{ projectId, runId: id }}>
          {children}
        </Link>
      )
    case 'eval':
      return (
        <Link to="/projects/$projectId/evals/$evalId" params={{ projectId, evalId: id }}>
          {children}
        </Link>
      )
    case 'object':
      return (
        <Link to="/projects/$projectId/objects/$objectId" params={{ projectId, objectId: id }}>
          {children}
        </Link>
      )
  }
}

export function ChartPart({ of }: { of: OfType<'chart'> }) {
  return (
    <div className={classes.chart}>
      {of.title && <Title order={3}>{of.title}</Title>}
      <Panel name="The chart">
        <Chart of={of} />
      </Panel>
    </div>
  )
}
