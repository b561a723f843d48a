// A value of any shape: a text with templates, or JSON. JSON that is wrong stays in the field, and changes nothing.
import { Group, Menu, SegmentedControl, Textarea, UnstyledButton } from '@mantine/core'
import { Braces } from 'lucide-react'
import { useId, useRef, useState } from 'react'
import { parseJson } from '../../parts/json-text.ts'
import classes from './editor.module.css'
import { Hint } from './hint.tsx'

interface Props {
  label: string
  hint?: string
  value: unknown
  error?: string | null
  isLocked: boolean
  /** The ids of the flow, for templates. */
  ids: readonly string[]
  /** An empty field takes the value away. */
  onChange: (value: unknown) => void
}

const asText = (value: unknown, isJson: boolean): string =>
  value === undefined ? '' : isJson ? JSON.stringify(value, null, 2) : String(value)

export function ValueField({ label, hint, value, error, isLocked, ids, onChange }: Props) {
  const id = useId()
  const area = useRef<HTMLTextAreaElement>(null)
  const mustBeJson = value !== undefined && typeof value !== 'string'
  const [wantsJson, setWantsJson] = useState(mustBeJson)
  const isJson = wantsJson || mustBeJson
  // The typed text is shown while it stands for the value that the flow has.
  const [typed, setTyped] = useState<{ text: string; value: unknown; problem: string | null } | null>(null)
  const isTyped = typed !== null && typed.value === value && isJson
  const text = isTyped ? typed.text : asText(value, isJson)
  const write = (next: string): void => {
    if (next.trim() === '' || !isJson) {
      setTyped(null)
      onChange(next === '' || (isJson && next.trim() === '') ? undefined : next)
      return
    }
    const parsed = parseJson(next)
    if ('problem' in parsed) {
      const { line, column, message } = parsed.problem
      setTyped({ text: next, value, problem: `Line ${line}, column ${column}: ${message}` })
      return
    }
    setTyped({ text: next, value: parsed.value, problem: null })
    onChange(parsed.value)
  }
  const choose = (mode: string): void => {
    setTyped(null)
    setWantsJson(mode === 'json')
    if (mode === 'text' && mustBeJson) onChange(JSON.stringify(value))
  }
  const insert = (template: string): void => {
    const at = area.current?.selectionStart ?? text.length
    write(text.slice(0, at) + template + text.slice(area.current?.selectionEnd ?? at))
    requestAnimationFrame(() => {
      area.current?.focus()
      area.current?.setSelectionRange(at + template.length, at + template.length)
    })
  }
  return (
    <div>
      <Group justify="space-between" gap="xs" mb={2}>
        <label htmlFor={id} className={classes.label}>
          {label}
        </label>
        {!isLocked && (
          <Group gap={4}>
            <TemplateMenu label={label} ids={ids} onPick={insert} />
            <SegmentedControl
              size="xs"
              aria-label={`${label} is written as`}
              data={[
                { value: 'text', label: 'Text' },
                { value: 'json', label: 'JSON' },
              ]}
              value={isJson ? 'json' : 'text'}
              onChange={choose}
            />
          </Group>
        )}
      </Group>
      <Textarea
        id={id}
        ref={area}
        autosize
        minRows={isJson ? 3 : 2}
        maxRows={16}
        description={hint && <Hint>{hint}</Hint>}
        classNames={isJson ? { input: 'mono' } : {}}
        value={text}
        error={(isTyped && typed.problem) || error}
        readOnly={isLocked}
        spellCheck={!isJson}
        onChange={(event) => write(event.currentTarget.value)}
      />
    </div>
  )
}

function TemplateMenu(props: { label: string; ids: readonly string[]; onPick: (template: string) => void }) {
  const templates = [
    { text: '{{input}}', hint: 'the input of the flow run; {{input.topic}} is a part of it' },
    { text: '{{previous}}', hint: 'the result of the step or round before' },
    { text: '{{item}}', hint: 'the value that the pattern hands out' },
    ...props.ids.map((id) => ({ text: `{{results.${id}}}`, hint: `the result of ${id}` })),
  ]
  return (
    <Menu position="bottom-end" width={280} shadow="md">
      <Menu.Target>
        <UnstyledButton className={classes.small} aria-label={`Insert a template into ${props.label}`}>
          <Braces size={12} aria-hidden /> Template
        </UnstyledButton>
      </Menu.Target>
      <Menu.Dropdown mah={300} style={{ overflowY: 'auto' }}>
        {templates.slice(0, 40).map(({ text, hint }) => (
          <Menu.Item key={text} onClick={() => props.onPick(text)}>
            <code className="mono">{text}</code>
            <div className={classes.itemHint}>{hint}</div>
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  )
}
