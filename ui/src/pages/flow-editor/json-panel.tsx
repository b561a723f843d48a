// The whole tree as JSON, in step with the form. A text that is no JSON keeps the last good tree.
import { Button, Group, Text, Textarea } from '@mantine/core'
import { useMemo, useRef } from 'react'
import { textOf } from './editing.ts'
import classes from './editor.module.css'
import type { Editor } from './use-editor.ts'

export function JsonPanel({ editor }: { editor: Editor }) {
  const { state, dispatch, isReadOnly } = editor
  const area = useRef<HTMLTextAreaElement>(null)
  const ofTree = useMemo(() => textOf(editor.root), [editor.root])
  const { problem } = state
  const goThere = (): void => {
    const at = problem?.offset ?? 0
    area.current?.focus()
    area.current?.setSelectionRange(at, Math.min(at + 1, area.current.value.length))
  }
  return (
    <div className={classes.json}>
      <Textarea
        ref={area}
        label="JSON"
        classNames={{
          root: classes.jsonRoot ?? '',
          wrapper: classes.jsonWrapper ?? '',
          input: `mono ${classes.jsonText}`,
        }}
        value={state.text ?? ofTree}
        readOnly={isReadOnly}
        spellCheck={false}
        autoCapitalize="off"
        autoCorrect="off"
        aria-invalid={problem !== null}
        aria-describedby="json-problem"
        onChange={(event) => dispatch({ type: 'json', text: event.currentTarget.value })}
        onBlur={() => {
          if (!problem) dispatch({ type: 'discard' })
        }}
      />
      <div id="json-problem" role="status" className={classes.jsonProblem}>
        {problem && (
          <Group gap="xs">
            <Text size="sm" className={classes.wrong}>
              Line {problem.line}, column {problem.column}: {problem.message} The tree is as it was.
            </Text>
            <Button size="compact-xs" variant="default" onClick={goThere}>
              Go there
            </Button>
            <Button size="compact-xs" variant="default" onClick={() => dispatch({ type: 'discard' })}>
              Discard
            </Button>
          </Group>
        )}
      </div>
    </div>
  )
}
