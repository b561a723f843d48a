// The possible beginnings of a new flow: a template, a stored flow, or the pattern that suits the work.
import { Alert, Badge, Button, Group, Select, Stack, Text, Textarea, UnstyledButton } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import {
  definitionsQuery,
  type Recommendation,
  recommendPattern,
  type TemplateDefinition,
  templateDefinitionsQuery,
} from '../../api/flow-definitions.ts'
import { duration, tokens } from '../../parts/figures.ts'
import { Failure, Loading } from '../../parts/states.tsx'
import { useWrite } from '../../parts/use-write.ts'
import classes from './editor.module.css'
import { shapeOf } from './patterns.ts'

export interface Beginning {
  name: string
  root: unknown
  /** An input to try. */
  input?: unknown
}

interface Props {
  projectId: string
  isOpen: boolean
  onBegin: (beginning: Beginning) => void
}

export function BeginWith({ projectId, isOpen, onBegin }: Props) {
  const [isShown, setIsShown] = useState(isOpen)
  const begin = (beginning: Beginning): void => {
    setIsShown(false)
    onBegin(beginning)
  }
  return (
    <details className={classes.begin} open={isShown} onToggle={(event) => setIsShown(event.currentTarget.open)}>
      <summary>Begin with a template, or with the pattern that suits your work</summary>
      <Templates projectId={projectId} onBegin={begin} />
      <div className={classes.beginRow}>
        <Recommend projectId={projectId} onBegin={begin} />
        <CopyOf projectId={projectId} onBegin={begin} />
      </div>
    </details>
  )
}

function Templates({ projectId, onBegin }: Omit<Props, 'isOpen'>) {
  const templates = useQuery(templateDefinitionsQuery(projectId))
  if (templates.isPending) return <Loading lines={2} />
  if (!templates.data) {
    return (
      <Failure
        what="The templates could not be read."
        error={templates.error}
        onRetry={() => void templates.refetch()}
      />
    )
  }
  return (
    <ul className={classes.cards} aria-label="Templates">
      {templates.data.items.map((template) => (
        <li key={template.name}>
          <UnstyledButton className={classes.card} onClick={() => onBegin(beginningOf(template))}>
            <span className={classes.cardTitle}>
              {template.title}
              <span className="dim">{shapeOf(template.pattern)?.label ?? template.pattern}</span>
            </span>
            <span className="dim">{template.description}</span>
          </UnstyledButton>
        </li>
      ))}
    </ul>
  )
}

export const beginningOf = ({ name, root, example }: TemplateDefinition): Beginning => ({
  name,
  root,
  input: example.input,
})

function CopyOf({ projectId, onBegin }: Omit<Props, 'isOpen'>) {
  const flows = useQuery(definitionsQuery(projectId))
  const items = flows.data ?? []
  if (items.length === 0) return null
  const begin = (id: string | null): void => {
    const flow = items.find((each) => each.id === id)
    if (flow) onBegin({ name: `${flow.name} copy`, root: flow.root })
  }
  return (
    <Select
      label="Copy of a stored flow"
      placeholder="Choose a flow"
      searchable
      value={null}
      data={items.map(({ id, name }) => ({ value: id, label: name }))}
      onChange={begin}
    />
  )
}

function Recommend({ projectId, onBegin }: Omit<Props, 'isOpen'>) {
  const [workload, setWorkload] = useState('')
  const { write, isBusy, problem } = useWrite()
  const [found, setFound] = useState<Recommendation | null>(null)
  const ask = (): void => void write(async () => setFound(await recommendPattern(projectId, workload)))
  return (
    <Stack gap="xs">
      <Textarea
        label="Your work, in words"
        placeholder="Summarise 40 reports and compare them"
        autosize
        minRows={2}
        maxRows={8}
        value={workload}
        error={problem}
        onChange={(event) => setWorkload(event.currentTarget.value)}
      />
      <Button
        size="compact-sm"
        variant="default"
        style={{ alignSelf: 'flex-start' }}
        loading={isBusy}
        disabled={workload.trim() === ''}
        onClick={() => ask()}
      >
        Recommend a pattern
      </Button>
      <div role="status">
        {found && <Found found={found} onUse={() => onBegin({ name: '', root: found.definition })} />}
      </div>
    </Stack>
  )
}

function Found({ found, onUse }: { found: Recommendation; onUse: () => void }) {
  const { pattern, reasoning, estimate } = found
  return (
    <Alert variant="outline" color="gray" title={shapeOf(pattern)?.label ?? pattern}>
      <Stack gap="xs" align="flex-start">
        <Text size="sm">{reasoning}</Text>
        <Group gap={6}>
          <Fact name="workers" value={String(estimate.workers)} />
          <Fact name="model calls" value={String(estimate.model_calls)} />
          <Fact name="tokens" value={tokens(estimate.tokens)} />
          <Fact name="expected" value={duration(estimate.duration)} />
        </Group>
        <Button size="compact-sm" onClick={onUse}>
          Use it
        </Button>
      </Stack>
    </Alert>
  )
}

function Fact({ name, value }: { name: string; value: string }) {
  return (
    <Badge variant="default" tt="none" fw={400} className="number">
      {name} {value}
    </Badge>
  )
}
