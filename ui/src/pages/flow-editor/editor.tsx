// The editor: head and actions, the tree, the form of the chosen node, and the JSON of the whole flow.

import { Alert, Badge, Button, Group, SegmentedControl, TextInput, Title } from '@mantine/core'
import { useHotkeys } from '@mantine/hooks'
import { Link } from '@tanstack/react-router'
import { useEffect, useEffectEvent, useMemo, useRef, useState } from 'react'
import type { FlowDefinition } from '../../api/flow-definitions.ts'
import { useMe } from '../../app/gate.tsx'
import { useRole } from '../../app/role.ts'
import { LeaveGuard } from '../../parts/leave-guard.tsx'
import { PageHead } from '../../parts/page-head.tsx'
import { Panel } from '../../parts/panel.tsx'
import { type Beginning, BeginWith } from './begin-with.tsx'
import { DefinitionActions, Enabled } from './definition-actions.tsx'
import { draftKey, dropDraft, readDraft, useKeptDraft } from './draft.ts'
import { type Flowing, isSameFlow } from './editing.ts'
import classes from './editor.module.css'
import { inputSketch } from './input-sketch.ts'
import { JsonPanel } from './json-panel.tsx'
import { NodeForm } from './node-form.tsx'
import { Picture } from './picture.tsx'
import { ProblemList, Verdict } from './problem-list.tsx'
import { inReadingOrder } from './reading-order.ts'
import { StartDialog } from './start-dialog.tsx'
import { TreePanel } from './tree-panel.tsx'
import { type Editor, useEditor } from './use-editor.ts'
import { type Saving, useSaving } from './use-saving.ts'

interface Props {
  projectId: string
  /** Null: the flow is new. */
  flow: FlowDefinition | null
  beginning: Beginning
  /** The beginning of a new flow. */
  origin?: string
}

/** The origin of a flow for which nobody chose a beginning. */
const BLANK = 'new'

export function FlowEditor({ projectId, flow, beginning, origin = BLANK }: Props) {
  const role = useRole(projectId)
  const key = draftKey(useMe().id, projectId, flow?.id ?? origin)
  const [draft] = useState(() => readDraft(key, beginning))
  // A draft of an older version keeps that version's time, so that saving notices the newer one.
  const [base, setBase] = useState<{ flow: FlowDefinition | null; as: Flowing }>({
    flow: flow && { ...flow, updated_at: draft?.since ?? flow.updated_at },
    as: beginning,
  })
  const [example, setExample] = useState(beginning.input)
  const [isStarting, setIsStarting] = useState(false)
  const [isLeaving, setIsLeaving] = useState(false)
  const mayEdit = flow === null ? role !== 'viewer' : role === 'admin' && flow.source === 'api'
  const initial = mayEdit && draft ? draft : beginning
  const editor = useEditor(projectId, readable(initial), !mayEdit)
  const { state, dispatch } = editor
  const { name, root } = state.now
  const isChanged = useMemo(() => !isSameFlow({ name, root }, base.as), [name, root, base.as])
  const isDirty = mayEdit && (state.problem !== null || isChanged)
  useKeptDraft(key, { name, root, since: base.flow?.updated_at ?? null }, isDirty && !isLeaving)
  const settle = (saved: FlowDefinition): void => setBase({ flow: saved, as: { name: saved.name, root: saved.root } })
  const saving = useSaving({ projectId, base: base.flow, flow: state.now, key, onSaved: settle })
  const load = (stored: FlowDefinition): void => {
    settle(stored)
    saving.forget()
    dispatch({ type: 'load', flow: readable(stored) })
  }
  const begin = (chosen: Beginning): void => {
    setExample(chosen.input)
    dispatch({ type: 'replace', flow: { name: name || chosen.name, root: chosen.root } })
  }
  const maySave = mayEdit && role === 'admin' && state.problem === null && (base.flow === null || isDirty)
  useHotkeys([['mod+S', () => maySave && saving.save()]], [])
  useHotkeys([
    ['mod+Z', () => mayEdit && dispatch({ type: 'undo' })],
    ['mod+shift+Z', () => mayEdit && dispatch({ type: 'redo' })],
  ])
  // A flow that nobody changes here follows the stored one.
  const follow = useEffectEvent((stored: FlowDefinition) => {
    if (!isDirty && base.flow && stored.updated_at > base.flow.updated_at) load(stored)
  })
  useEffect(() => {
    if (flow) follow(flow)
  }, [flow])
  const isWrong = state.problem !== null || editor.problems.length > 0
  return (
    <>
      <Head projectId={projectId} flow={base.flow} isDirty={isDirty}>
        <DefinitionActions
          {...{ projectId, base: base.flow, flow: state.now, isDirty, mayEdit, isWrong }}
          isBusy={saving.isBusy}
          onSave={() => saving.save()}
          onStart={() => setIsStarting(true)}
          onDeleted={() => dropDraft(key)}
        />
      </Head>
      <Notices
        {...{ flow: base.flow, saving, onLoad: load, mayEdit }}
        isRestored={draft !== null && isDirty && mayEdit}
        onDiscard={() => dispatch({ type: 'load', flow: readable(base.as) })}
      />
      {base.flow === null && mayEdit && (
        <BeginWith projectId={projectId} isOpen={origin === BLANK && !draft} onBegin={begin} />
      )}
      <Body editor={editor} saving={saving}>
        {base.flow && (
          <Enabled
            flow={base.flow}
            onSaved={(saved) => setBase((known) => ({ ...known, flow: switched(known.flow, saved) }))}
          />
        )}
      </Body>
      <LeaveGuard of="this flow" isDirty={isDirty} onLeave={() => setIsLeaving(true)} />
      {isStarting && (
        <StartDialog
          projectId={projectId}
          what={base.flow && !isDirty ? { flow_id: base.flow.id } : { root: editor.root }}
          sketch={example ?? inputSketch(editor.root)}
          onClose={() => setIsStarting(false)}
        />
      )}
    </>
  )
}

const readable = ({ name, root }: Flowing): Flowing => ({ name, root: inReadingOrder(root) })

/** If the tree differs as well, somebody else changed it: the old time stays, so that saving notices. */
const switched = (known: FlowDefinition | null, saved: FlowDefinition): FlowDefinition =>
  known && !isSameFlow(known, saved) ? { ...saved, updated_at: known.updated_at } : saved

function Head(props: { projectId: string; flow: FlowDefinition | null; isDirty: boolean; children: React.ReactNode }) {
  const { projectId, flow, isDirty } = props
  const name = flow?.name ?? 'New flow'
  return (
    <PageHead
      name={flow ? `${name} · Flow` : name}
      title={
        <div style={{ minWidth: 0 }}>
          <Link to="/projects/$projectId/flows" params={{ projectId }} className="dim">
            Flows
          </Link>
          <Group gap="sm">
            <Title order={1}>{name}</Title>
            {flow?.source === 'app' && <Badge variant="default">in the code</Badge>}
            {flow && !flow.enabled && <Badge variant="default">disabled</Badge>}
            {isDirty && (
              <Badge variant="default" className={classes.unsaved}>
                unsaved changes
              </Badge>
            )}
          </Group>
        </div>
      }
    >
      {props.children}
    </PageHead>
  )
}

interface NoticesProps {
  flow: FlowDefinition | null
  saving: Saving
  mayEdit: boolean
  isRestored: boolean
  onLoad: (flow: FlowDefinition) => void
  onDiscard: () => void
}

function Notices({ flow, saving, mayEdit, isRestored, onLoad, onDiscard }: NoticesProps) {
  const { theirs, problem } = saving
  return (
    <div className={classes.notices}>
      {flow?.source === 'app' && (
        <Alert color="gray">
          This flow follows the code of the app module. Here it can only be enabled or disabled.
        </Alert>
      )}
      {flow?.source === 'api' && !mayEdit && <Alert color="gray">Only an admin of the project changes flows.</Alert>}
      {problem && (
        <Alert color="red" role="alert" title="The flow is not saved">
          {problem}
        </Alert>
      )}
      {theirs && (
        <Alert color="yellow" role="alert" title="Somebody else changed this flow after you opened it">
          <Group gap="xs">
            <Button size="compact-sm" variant="default" onClick={() => onLoad(theirs)}>
              Load their version
            </Button>
            <Button size="compact-sm" variant="default" onClick={() => saving.save({ over: true })}>
              Save mine over it
            </Button>
          </Group>
        </Alert>
      )}
      {isRestored && (
        <Alert color="yellow" title="Your unsaved changes are back">
          <Button size="compact-sm" variant="default" onClick={onDiscard}>
            Discard them
          </Button>
        </Alert>
      )}
    </div>
  )
}

type View = 'JSON' | 'Picture'

function Body({ editor, saving, children }: { editor: Editor; saving: Saving; children: React.ReactNode }) {
  const { state, dispatch } = editor
  const [view, setView] = useState<View>('JSON')
  const form = useRef<HTMLElement>(null)
  /** Puts the focus into the form: into the field with the problem, else into the first one. */
  const edit = (): void => {
    requestAnimationFrame(() => {
      const field =
        form.current?.querySelector<HTMLElement>('[aria-invalid="true"]') ??
        form.current?.querySelector<HTMLElement>('input:not([type="radio"], [type="checkbox"]), textarea')
      field?.focus()
    })
  }
  return (
    <>
      <div className={classes.bar}>
        <TextInput
          label="Name"
          className={classes.nameField}
          value={state.now.name}
          maxLength={200}
          error={saving.nameProblem}
          readOnly={editor.isReadOnly}
          onChange={(event) => dispatch({ type: 'name', name: event.currentTarget.value })}
        />
        {children}
        <Verdict editor={editor} />
      </div>
      <ProblemList editor={editor} onGo={edit} />
      <div className={classes.columns}>
        <TreePanel editor={editor} onEdit={edit} />
        <NodeForm editor={editor} ref={form} />
        <section className={classes.side} aria-label="Whole flow">
          <SegmentedControl
            size="xs"
            aria-label="Show the whole flow as"
            data={['JSON', 'Picture']}
            value={view}
            onChange={(next) => setView(next === 'Picture' ? 'Picture' : 'JSON')}
          />
          <Panel name={view}>{view === 'JSON' ? <JsonPanel editor={editor} /> : <Picture editor={editor} />}</Panel>
        </section>
      </div>
    </>
  )
}
