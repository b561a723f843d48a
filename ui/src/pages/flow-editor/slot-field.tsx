// A field that holds nodes. The nodes themselves are edited in their own forms.
import { Button, Group, Input, Select, Text, UnstyledButton } from '@mantine/core'
import { Plus } from 'lucide-react'
import classes from './editor.module.css'
import { Hint } from './hint.tsx'
import type { Slot } from './patterns.ts'
import { problemsAt } from './problems.ts'
import { childrenOf, isNode, kindOf, pathAt, type TreeNode, titleOf, withValue } from './tree.ts'
import { addInside, blankFunction } from './tree-edits.ts'
import type { Editor } from './use-editor.ts'

const MOST_SHOWN = 12

export function SlotField({ editor, node, slot }: { editor: Editor; node: TreeNode; slot: Slot }) {
  const { selected, problems, isLocked, dispatch } = editor
  const inside = childrenOf(node, selected).filter((child) => child.slot.name === slot.name)
  const error = problemsAt(problems, selected, slot.name)
  const isList = slot.kind === 'nodes' || slot.kind === 'leaves'
  return (
    <Input.Wrapper label={slot.label} labelElement="div" description={<Hint>{slot.hint}</Hint>} error={error}>
      {slot.kind === 'work' && <WorkKind editor={editor} value={node[slot.name]} slot={slot} />}
      <Group gap={4} mt={6}>
        {inside.slice(0, MOST_SHOWN).map(({ path, value }) => (
          <UnstyledButton key={path} className={classes.chip} onClick={() => dispatch({ type: 'select', path })}>
            {titleOf(value)} <span className="dim">{kindOf(value)}</span>
          </UnstyledButton>
        ))}
        {inside.length > MOST_SHOWN && (
          <Text size="xs" className="dim">
            and {inside.length - MOST_SHOWN} more
          </Text>
        )}
        {!isLocked && (isList || (slot.kind === 'node' && inside.length === 0)) && (
          <Button
            size="compact-xs"
            variant="default"
            leftSection={<Plus size={11} aria-hidden />}
            aria-label={`Add to ${slot.label}`}
            onClick={() =>
              isList
                ? editor.apply(addInside(editor.root, selected, blankFunction))
                : editor.setField(slot.name, blankFunction)
            }
          >
            Add
          </Button>
        )}
      </Group>
    </Input.Wrapper>
  )
}

const NOTHING = 'nothing'
const NAME = 'name'
const LEAF = 'leaf'

/** Chooses between the words of the field, the name of a function, and a leaf. */
function WorkKind({ editor, value, slot }: { editor: Editor; value: unknown; slot: Slot }) {
  const { choices = [], isOptional, name } = slot
  const isWord = typeof value === 'string' && choices.includes(value)
  const current = value === undefined ? NOTHING : isWord ? value : typeof value === 'string' ? NAME : LEAF
  const to = pathAt(editor.selected, name)
  const put = (next: unknown): void =>
    editor.dispatch({ type: 'edit', root: withValue(editor.root, to, next), path: editor.selected })
  const choose = (kind: string | null): void => {
    if (kind === null || kind === current) return
    const given = isNode(value) && typeof value.function === 'string' ? value.function : 'muster.identity'
    if (kind === NOTHING) put(undefined)
    else if (kind === NAME) put(given)
    else if (kind === LEAF) put(current === NAME ? { type: 'task', function: value } : blankFunction)
    else put(kind)
  }
  return (
    <Select
      mt={4}
      aria-label={slot.label}
      allowDeselect={false}
      readOnly={editor.isLocked}
      data={[
        ...(isOptional || value === undefined
          ? [{ value: NOTHING, label: isOptional ? 'The default' : 'Not chosen' }]
          : []),
        ...choices.map((word) => ({ value: word, label: word })),
        { value: NAME, label: 'A function, by its name' },
        { value: LEAF, label: 'A leaf: an agent or a function with arguments' },
      ]}
      value={current}
      onChange={choose}
    />
  )
}
