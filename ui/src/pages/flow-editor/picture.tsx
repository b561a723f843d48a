// The tree as nested boxes: steps below each other, branches side by side.
import { UnstyledButton } from '@mantine/core'
import { shapeOf } from './patterns.ts'
import classes from './picture.module.css'
import { childrenOf, isLeafNode, isNode, kindOf, titleOf } from './tree.ts'
import type { Editor } from './use-editor.ts'

const MOST_SHOWN = 8
const SIDE_BY_SIDE = new Set(['parallel', 'adaptive'])

export function Picture({ editor }: { editor: Editor }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
    <section className={classes.picture} aria-label="Picture of the flow" tabIndex={0}>
      <Box editor={editor} value={editor.root} path="root" label={null} />
    </section>
  )
}

interface BoxProps {
  editor: Editor
  value: unknown
  path: string
  label: string | null
}

function Box({ editor, value, path, label }: BoxProps) {
  const inside = childrenOf(value, path)
  const isLeaf = isLeafNode(value) || !isNode(value) || !shapeOf(value.type)
  const isAside = isNode(value) && SIDE_BY_SIDE.has(String(value.type))
  const isChosen = path === editor.selected
  const isWrong = editor.problems.some(({ node }) => node === path)
  return (
    <div className={classes.box} data-leaf={isLeaf || undefined} data-chosen={isChosen || undefined}>
      <UnstyledButton
        className={classes.name}
        data-wrong={isWrong || undefined}
        onClick={() => editor.dispatch({ type: 'select', path })}
      >
        {label && <span className="dim">{label} </span>}
        {titleOf(value)} <span className="dim">{kindOf(value)}</span>
      </UnstyledButton>
      {inside.length > 0 && (
        <div className={classes.inside} data-aside={isAside || undefined}>
          {inside.slice(0, MOST_SHOWN).map((child) => (
            <Box
              key={child.path}
              editor={editor}
              value={child.value}
              path={child.path}
              label={child.slot.kind === 'work' ? child.slot.label.toLowerCase() : null}
            />
          ))}
          {inside.length > MOST_SHOWN && <span className="dim">and {inside.length - MOST_SHOWN} more</span>}
        </div>
      )}
    </div>
  )
}
