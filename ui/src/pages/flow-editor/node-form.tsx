// The form of the chosen node.
import { Alert, Button, Group, Select, Stack, Text, TextInput, Title } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { type Ref, useState } from 'react'
import classes from './editor.module.css'
import { FunctionName, LeafFields } from './leaf-fields.tsx'
import { Count, PatternFieldInput } from './pattern-fields.tsx'
import { patternShapes, shapeOf } from './patterns.ts'
import { problemsAt } from './problems.ts'
import { isNode, type TreeNode, titleOf } from './tree.ts'
import { asPattern, blankAgent, blankFunction } from './tree-edits.ts'
import type { Editor } from './use-editor.ts'

export function NodeForm({ editor, ref }: { editor: Editor; ref: Ref<HTMLElement> }) {
  const { node, selected, problems } = editor
  const wrong = problemsAt(problems, selected, '')
  return (
    <section className={classes.form} aria-label="Chosen node" ref={ref} tabIndex={-1}>
      <Title order={2} mb="sm" className="cut">
        {titleOf(node)}
      </Title>
      {editor.state.problem && !editor.isReadOnly && (
        <Alert color="yellow" mb="sm">
          The JSON is not right yet, so the tree and this form wait. Mend it, or discard what you wrote there.
        </Alert>
      )}
      {wrong && (
        <Alert color="red" mb="sm">
          {wrong}
        </Alert>
      )}
      <Fields editor={editor} key={selected} />
    </section>
  )
}

function Fields({ editor }: { editor: Editor }) {
  const { node } = editor
  if (typeof node === 'string') return <NamedFunction editor={editor} name={node} />
  if (!isNode(node) || (node.type !== 'task' && !shapeOf(node.type))) return <Replace editor={editor} />
  return (
    <Stack gap="sm">
      {node.type === 'task' ? <LeafFields editor={editor} node={node} /> : <Pattern editor={editor} node={node} />}
      <SharedFields editor={editor} node={node} />
    </Stack>
  )
}

function Pattern({ editor, node }: { editor: Editor; node: TreeNode }) {
  const shape = shapeOf(node.type)
  const change = (type: string | null): void => {
    if (type === null) return
    const { node: next, lost } = asPattern(node, type)
    editor.setNode(next)
    if (lost === 0) return
    const message =
      lost === 1
        ? 'A node does not fit this pattern and was left out.'
        : `${lost} nodes do not fit this pattern and were left out.`
    notifications.show({ color: 'yellow', message: `${message} Undo brings it all back.` })
  }
  return (
    <>
      <Select
        label="Pattern"
        description={`For ${shape?.summary}.`}
        allowDeselect={false}
        readOnly={editor.isLocked}
        data={patternShapes.map(({ type, label }) => ({ value: type, label }))}
        value={String(node.type)}
        onChange={change}
      />
      {shape?.fields.map((field) => (
        <PatternFieldInput key={`${shape.type} ${field.name}`} editor={editor} node={node} field={field} />
      ))}
    </>
  )
}

/** The fields of every node. */
function SharedFields({ editor, node }: { editor: Editor; node: TreeNode }) {
  const { selected, problems, isLocked } = editor
  const retry = isNode(node.retry) ? node.retry : null
  const errors = { retry: problemsAt(problems, selected, 'retry'), timeout: problemsAt(problems, selected, 'timeout') }
  const [isOpen, setIsOpen] = useState(retry !== null || node.timeout !== undefined)
  const isWrong = errors.retry !== null || errors.timeout !== null
  const setRetry = (change: object): void => {
    const next: Record<string, unknown> = { ...retry, ...change }
    editor.setField('retry', next.max_retries === undefined ? undefined : next)
  }
  return (
    <>
      <TextInput
        label="Id"
        description="Its name: letters, digits, _ or -, once per flow. Results, traces and errors show it."
        value={typeof node.id === 'string' ? node.id : ''}
        error={problemsAt(problems, selected, 'id')}
        readOnly={isLocked}
        onChange={(event) => editor.setField('id', event.currentTarget.value || undefined)}
      />
      <details
        className={classes.details}
        open={isOpen || isWrong}
        onToggle={(event) => setIsOpen(event.currentTarget.open)}
      >
        <summary>Retries and time limit</summary>
        <Stack gap="sm" mt="sm">
          <Count
            label="Retries"
            description="A node that failed is tried again, up to so many times."
            min={0}
            error={errors.retry}
            readOnly={isLocked}
            value={retry?.max_retries}
            onChange={(max_retries) => setRetry({ max_retries })}
          />
          <Count
            label="Backoff"
            description="The wait before each further attempt, in milliseconds."
            min={0}
            error={null}
            readOnly={isLocked || retry === null}
            value={retry?.backoff}
            onChange={(backoff) => setRetry({ backoff })}
          />
          <Count
            label="Timeout"
            description="The most time of an attempt, in milliseconds."
            error={errors.timeout}
            readOnly={isLocked}
            value={node.timeout}
            onChange={(timeout) => editor.setField('timeout', timeout)}
          />
        </Stack>
      </details>
    </>
  )
}

function NamedFunction({ editor, name }: { editor: Editor; name: string }) {
  return (
    <Stack gap="sm">
      <FunctionName
        label="Function"
        value={name}
        error={null}
        isLocked={editor.isLocked}
        onChange={(value) => editor.setNode(value, 'name')}
      />
      <Text size="sm" className="dim">
        The function is given the value that the pattern has for it.
      </Text>
      {!editor.isLocked && (
        <Button
          size="compact-sm"
          variant="default"
          style={{ alignSelf: 'flex-start' }}
          onClick={() => editor.setNode({ type: 'task', function: name })}
        >
          Give it arguments, retries or a time limit
        </Button>
      )}
    </Stack>
  )
}

/** For a value that is no node, and for a node of an unknown type. */
function Replace({ editor }: { editor: Editor }) {
  const choices = [
    { label: 'Agent', node: blankAgent },
    { label: 'Function', node: blankFunction },
    ...patternShapes.map(({ label, blank }) => ({ label, node: blank })),
  ]
  return (
    <Stack gap="sm">
      <Text size="sm">This is no node that Muster knows. {editor.isLocked ? '' : 'Put another one in its place:'}</Text>
      {!editor.isLocked && (
        <Group gap={4}>
          {choices.map(({ label, node }) => (
            <Button key={label} size="compact-sm" variant="default" onClick={() => editor.setNode(node)}>
              {label}
            </Button>
          ))}
        </Group>
      )}
    </Stack>
  )
}
