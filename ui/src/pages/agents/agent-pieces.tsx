// Small pieces that the panels of an agent share.
import { ActionIcon, CopyButton, TextInput } from '@mantine/core'
import { Check, Copy } from 'lucide-react'
import type { ReactNode } from 'react'
import classes from './agents.module.css'

/** A text that people copy. The clipboard exists only on secure origins, so a focus selects the whole text too. */
export function Copyable({
  label,
  value,
  isLabelShown = true,
}: {
  label: string
  value: string
  isLabelShown?: boolean
}) {
  return (
    <TextInput
      {...(isLabelShown ? { label } : { 'aria-label': label })}
      readOnly
      size="xs"
      value={value}
      classNames={{ input: 'mono' }}
      onFocus={(event) => event.currentTarget.select()}
      rightSection={
        <CopyButton value={value}>
          {({ copied, copy }) => (
            <ActionIcon variant="subtle" size="sm" onClick={copy} aria-label={copied ? 'Copied' : `Copy ${label}`}>
              {copied ? <Check size={13} aria-hidden /> : <Copy size={13} aria-hidden />}
            </ActionIcon>
          )}
        </CopyButton>
      }
    />
  )
}

export interface FactRow {
  name: string
  /** Null: the fact is left out. */
  value: ReactNode | null
}

export function Facts({ rows }: { rows: readonly FactRow[] }) {
  return (
    <dl className={classes.facts}>
      {rows
        .filter(({ value }) => value !== null && value !== '')
        .map(({ name, value }) => (
          <FactOf key={name} name={name} value={value} />
        ))}
    </dl>
  )
}

function FactOf({ name, value }: FactRow) {
  return (
    <>
      <dt className="dim">{name}</dt>
      <dd>{value}</dd>
    </>
  )
}

export function Chips({ of }: { of: readonly string[] }) {
  return (
    <span className={classes.chips}>
      {of.map((text) => (
        <code key={text} className={classes.chip}>
          {text}
        </code>
      ))}
    </span>
  )
}
