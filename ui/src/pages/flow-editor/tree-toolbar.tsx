// The changes of the tree as buttons. Those that cannot be made now stay reachable, and say so.
import { ActionIcon, Button, Group, Menu, Tooltip } from '@mantine/core'
import {
  ArrowDown,
  ArrowLeft,
  ArrowRight,
  ArrowUp,
  Bot,
  Copy,
  FolderInput,
  type LucideIcon,
  Plus,
  Redo2,
  SquareFunction,
  Trash2,
  Undo2,
} from 'lucide-react'
import { useMemo, useState } from 'react'
import classes from './editor.module.css'
import { InsertDialog } from './insert-dialog.tsx'
import { patternShapes } from './patterns.ts'
import type { TreeNode } from './tree.ts'
import {
  addAfter,
  addInside,
  addNode,
  blankAgent,
  blankFunction,
  duplicateNode,
  type Edit,
  moveIn,
  moveNode,
  moveOut,
  removeNode,
  unwrapNode,
  wrapNode,
} from './tree-edits.ts'
import type { Editor } from './use-editor.ts'

export function TreeToolbar({ editor }: { editor: Editor }) {
  const { root, selected, state, dispatch } = editor
  const edits = useMemo(
    () => ({
      up: moveNode(root, selected, -1),
      down: moveNode(root, selected, 1),
      out: moveOut(root, selected),
      in: moveIn(root, selected),
      copy: duplicateNode(root, selected),
      remove: removeNode(root, selected),
    }),
    [root, selected],
  )
  if (editor.isReadOnly) return null
  const tool = (name: string, icon: LucideIcon, edit: Edit | null, keys?: string) => (
    <Tool name={name} icon={icon} keys={keys} onClick={edit && !editor.isLocked ? () => editor.apply(edit) : null} />
  )
  return (
    <fieldset className={classes.toolbar} aria-label="Change the tree">
      <Group gap={4}>
        <AddMenu editor={editor} />
        <WrapMenu editor={editor} />
      </Group>
      <Group gap={2}>
        {tool('Move up', ArrowUp, edits.up, 'Alt + ↑')}
        {tool('Move down', ArrowDown, edits.down, 'Alt + ↓')}
        {tool('Move out', ArrowLeft, edits.out, 'Alt + ←')}
        {tool('Move in', ArrowRight, edits.in, 'Alt + →')}
        {tool('Duplicate node', Copy, edits.copy, 'Ctrl + D')}
        {tool('Remove node', Trash2, edits.remove, 'Delete')}
        <Tool
          name="Undo"
          icon={Undo2}
          keys="Ctrl + Z"
          onClick={state.past.length > 0 || state.problem ? () => dispatch({ type: 'undo' }) : null}
        />
        <Tool
          name="Redo"
          icon={Redo2}
          keys="Ctrl + Shift + Z"
          onClick={state.future.length > 0 && !state.problem ? () => dispatch({ type: 'redo' }) : null}
        />
      </Group>
    </fieldset>
  )
}

interface ToolProps {
  name: string
  icon: LucideIcon
  keys?: string | undefined
  /** Null: it cannot be done now. The button keeps the focus. */
  onClick: (() => void) | null
}

function Tool({ name, icon: Icon, keys, onClick }: ToolProps) {
  return (
    <Tooltip label={keys ? `${name} (${keys})` : name} openDelay={400}>
      <ActionIcon
        variant="subtle"
        color="gray"
        size={26}
        aria-label={name}
        aria-disabled={onClick === null}
        {...(onClick === null ? { 'data-disabled': true } : { onClick })}
      >
        <Icon size={14} aria-hidden />
      </ActionIcon>
    </Tooltip>
  )
}

type Place = 'inside' | 'after'

function AddMenu({ editor }: { editor: Editor }) {
  const { root, selected } = editor
  const [isInserting, setIsInserting] = useState(false)
  const [place, setPlace] = useState<Place>('inside')
  const may = useMemo(
    () => ({ inside: addInside(root, selected, blankAgent), after: addAfter(root, selected, blankAgent) }),
    [root, selected],
  )
  const hasChoice = may.inside !== null && may.after !== null
  const edit = (node: TreeNode): Edit | null => {
    if (!hasChoice) return addNode(root, selected, node)
    return place === 'inside' ? addInside(root, selected, node) : addAfter(root, selected, node)
  }
  const item = (name: string, hint: string, node: TreeNode, Icon?: LucideIcon) => {
    const made = edit(node)
    return (
      <Menu.Item
        key={name}
        disabled={made === null}
        leftSection={Icon && <Icon size={14} aria-hidden />}
        onClick={() => editor.apply(made)}
      >
        {name}
        <div className={classes.itemHint}>{hint}</div>
      </Menu.Item>
    )
  }
  return (
    <>
      <Menu position="bottom-start" width={300} shadow="md">
        <Menu.Target>
          <Button size="compact-sm" leftSection={<Plus size={13} aria-hidden />} disabled={editor.isLocked}>
            Add
          </Button>
        </Menu.Target>
        <Menu.Dropdown mah={420} style={{ overflowY: 'auto' }}>
          {hasChoice && (
            <>
              <Menu.Item
                closeMenuOnClick={false}
                onClick={() => setPlace(place === 'inside' ? 'after' : 'inside')}
                leftSection={<FolderInput size={14} aria-hidden />}
              >
                {place === 'inside' ? 'It goes inside the chosen node' : 'It goes after the chosen node'}
                <div className={classes.itemHint}>Press to change the place.</div>
              </Menu.Item>
              <Menu.Divider />
            </>
          )}
          {item('Agent', 'a run of an agent', blankAgent, Bot)}
          {item('Function', 'a call of a function, or a question to the model', blankFunction, SquareFunction)}
          <Menu.Item leftSection={<Copy size={14} aria-hidden />} onClick={() => setIsInserting(true)}>
            Stored flow or template
            <div className={classes.itemHint}>a copy of its tree</div>
          </Menu.Item>
          <Menu.Divider />
          {patternShapes.map(({ label, summary, blank }) => item(label, summary, blank))}
        </Menu.Dropdown>
      </Menu>
      {isInserting && (
        <InsertDialog
          projectId={editor.projectId}
          root={root}
          editOf={edit}
          onInsert={editor.apply}
          onClose={() => setIsInserting(false)}
        />
      )}
    </>
  )
}

function WrapMenu({ editor }: { editor: Editor }) {
  const { root, selected } = editor
  const wraps = patternShapes.flatMap(({ type, label }) => {
    const edit = wrapNode(root, selected, type)
    return edit ? [{ type, label, edit }] : []
  })
  const unwrapped = unwrapNode(root, selected)
  return (
    <Menu position="bottom-start" shadow="md">
      <Menu.Target>
        <Button size="compact-sm" variant="default" disabled={editor.isLocked || (wraps.length === 0 && !unwrapped)}>
          Wrap
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        {wraps.length > 0 && <Menu.Label>Put the chosen node into</Menu.Label>}
        {wraps.map(({ type, label, edit }) => (
          <Menu.Item key={type} onClick={() => editor.apply(edit)}>
            {label}
          </Menu.Item>
        ))}
        {unwrapped && <Menu.Divider />}
        {unwrapped && <Menu.Item onClick={() => editor.apply(unwrapped)}>Unwrap</Menu.Item>}
      </Menu.Dropdown>
    </Menu>
  )
}
