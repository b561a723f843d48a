// A layout that Muster or a model made: components as data, drawn by our own registry. A component that the registry
// does not know is shown as a placeholder.
import { Stack } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { type ComponentType, useMemo, useState } from 'react'
import type { LeafComponent, OfType } from '../../../../src/kernel/genui.ts'
import { decideTask, type LayoutContext, layoutQuery, type TaskAction } from '../../api/chats.ts'
import { Problem } from '../../parts/problem.tsx'
import { Failure, Loading } from '../../parts/states.tsx'
import { useWrite } from '../../parts/use-write.ts'
import classes from './genui.module.css'
import { DiffPart, MarkdownPart, TablePart, TextPart } from './genui-content.tsx'
import { ButtonPart, ChartPart, InputPart, SelectPart } from './genui-controls.tsx'
import { fieldsOf, readComponents, type Shown } from './genui-read.ts'
import { type Action, LayoutState } from './genui-state.ts'

type Registry = { [Type in LeafComponent['type']]: ComponentType<{ of: OfType<Type> }> }

const REGISTRY: Registry = {
  text: TextPart,
  input: InputPart,
  select: SelectPart,
  button: ButtonPart,
  table: TablePart,
  diff: DiffPart,
  chart: ChartPart,
  markdown: MarkdownPart,
}

interface Props {
  projectId: string
  context: LayoutContext
  /** Called after an action of the layout is done. */
  onDone?: () => void
}

export function LayoutView({ projectId, context, onDone }: Props) {
  const layout = useQuery(layoutQuery(projectId, context))
  if (layout.isPending) return <Loading />
  if (!layout.data)
    return <Failure what="The layout could not be made." error={layout.error} onRetry={() => void layout.refetch()} />
  return <Layout projectId={projectId} components={layout.data} {...(onDone && { onDone })} />
}

function Layout({ projectId, components, onDone }: Omit<Props, 'context'> & { components: readonly unknown[] }) {
  const shown = useMemo(() => readComponents(components), [components])
  const [values, setValues] = useState<ReadonlyMap<string, string>>(new Map())
  const [missing, setMissing] = useState<string | null>(null)
  const { write, isBusy, problem } = useWrite({
    reads: [
      ['task', projectId],
      ['layout', projectId],
    ],
  })
  const act = async (action: Action): Promise<void> => {
    const from = 'from' in action ? action.from : undefined
    const value = (from === undefined ? undefined : values.get(from))?.trim() ?? ''
    const isMissing = value === '' && from !== undefined && fieldsOf(shown).get(from)?.isRequired === true
    setMissing(isMissing ? from : null)
    if (isMissing) return
    if (await write(() => decideTask(projectId, taskAction(action, value)), DONE[action.type])) onDone?.()
  }
  const state = {
    projectId,
    isBusy,
    values,
    missing,
    setValue: (id: string, value: string) => setValues(new Map(values).set(id, value)),
    act: (action: Action) => void act(action),
  }
  return (
    <LayoutState value={state}>
      <Stack gap="sm" className={classes.layout}>
        <Problem text={problem} />
        {shown.map((each) => (
          <Part key={each.key} shown={each} />
        ))}
      </Stack>
    </LayoutState>
  )
}

const DONE: Record<Action['type'], string> = {
  approve: 'The suggestion is approved.',
  reject: 'The suggestion is rejected.',
  answer: 'The answer is given.',
}

function taskAction(action: Action, value: string): TaskAction {
  const taskId = action.task_id
  switch (action.type) {
    case 'approve':
      return { type: 'approve', taskId }
    case 'reject':
      return { type: 'reject', taskId, reason: value }
    case 'answer':
      return { type: 'answer', taskId, answer: value }
  }
}

function Part({ shown }: { shown: Shown }) {
  switch (shown.kind) {
    case 'unknown':
      return <div className={classes.unknown}>This page cannot show the component “{shown.type}”.</div>
    case 'group':
      return (
        <fieldset className={classes.group}>
          {shown.title !== null && <legend>{shown.title}</legend>}
          {shown.children.map((each) => (
            <Part key={each.key} shown={each} />
          ))}
        </fieldset>
      )
    case 'leaf': {
      // The registry has the part of each type under its name.
      const Known = REGISTRY[shown.component.type] as ComponentType<{ of: LeafComponent }>
      return <Known of={shown.component} />
    }
  }
}
