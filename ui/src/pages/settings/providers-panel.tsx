// The models' makers, which belong to the instance, and the model that a project uses where none is named.
import { Button, Group, Text } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Plus } from 'lucide-react'
import { useState } from 'react'
import type { Provider } from '../../../../src/kernel/provider.ts'
import { remove } from '../../api/client.ts'
import { providersQuery } from '../../api/settings.ts'
import { useMe } from '../../app/gate.tsx'
import { Confirm, type Question } from '../../parts/confirm.tsx'
import { Failure, Loading, Stale } from '../../parts/states.tsx'
import { tell } from '../../parts/use-write.ts'
import { DefaultModel } from './default-model.tsx'
import { ProviderDialog } from './provider-dialog.tsx'
import { Section } from './section.tsx'
import classes from './settings.module.css'
import { type Trial, useTrials } from './use-trials.ts'

export function ProvidersPanel({ projectId }: { projectId: string }) {
  const me = useMe()
  return (
    <>
      {me.instance_admin ? (
        <Providers />
      ) : (
        <Section name="Providers">
          <Text size="sm" className="dim">
            Providers belong to the whole instance. Ask its admin to add one.
          </Text>
        </Section>
      )}
      <DefaultModel projectId={projectId} />
    </>
  )
}

function Providers() {
  const client = useQueryClient()
  const providers = useQuery(providersQuery)
  const [dialog, setDialog] = useState<{ provider: Provider | null } | null>(null)
  const [question, setQuestion] = useState<Question | null>(null)
  const { trials, test } = useTrials()
  const saved = (name: string, isNew: boolean): void => {
    setDialog(null)
    tell(isNew ? `The provider ${name} is added.` : `The provider ${name} is changed.`)
    void client.invalidateQueries({ queryKey: providersQuery.queryKey })
    void test(name)
  }
  const askDelete = (name: string): void =>
    setQuestion({
      title: `Delete the provider ${name}?`,
      text: 'Agents that name it fail at their next call. Its key is forgotten.',
      action: 'Delete',
      onYes: async () => {
        await remove(`/api/providers/${encodeURIComponent(name)}`)
        await client.invalidateQueries({ queryKey: providersQuery.queryKey })
        tell(`The provider ${name} is deleted.`)
      },
    })
  return (
    <Section
      name="Providers"
      about="Model providers, shared by all projects. Keys are stored encrypted and are never shown again."
      action={
        <Button size="xs" leftSection={<Plus size={13} aria-hidden />} onClick={() => setDialog({ provider: null })}>
          Add provider
        </Button>
      }
    >
      {providers.isPending && <Loading />}
      {providers.isError && !providers.data && (
        <Failure
          what="The providers could not be read."
          error={providers.error}
          onRetry={() => void providers.refetch()}
        />
      )}
      {providers.isError && providers.data && <Stale onRetry={() => void providers.refetch()} />}
      {providers.data && (
        <ul className={classes.list} aria-label="Providers">
          {providers.data.items.map((provider) => (
            <Row
              key={provider.name}
              provider={provider}
              trial={trials.get(provider.name)}
              onTest={() => void test(provider.name)}
              onEdit={() => setDialog({ provider })}
              onDelete={() => askDelete(provider.name)}
            />
          ))}
        </ul>
      )}
      {dialog && <ProviderDialog provider={dialog.provider} onSaved={saved} onClose={() => setDialog(null)} />}
      <Confirm question={question} onClose={() => setQuestion(null)} />
    </Section>
  )
}

interface RowProps {
  provider: Provider
  trial: Trial | undefined
  onTest: () => void
  onEdit: () => void
  onDelete: () => void
}

function Row({ provider, trial, onTest, onEdit, onDelete }: RowProps) {
  const { name, kind, base_url, has_api_key, source, prices } = provider
  const priced = Object.keys(prices).length
  const facts = [
    base_url,
    kind === 'offline' ? 'needs no key' : has_api_key ? 'key stored' : 'no key',
    source === 'api' ? null : `from the ${source === 'environment' ? 'environment' : 'build'}`,
    priced > 0 ? `${priced} priced ${priced === 1 ? 'model' : 'models'}` : null,
  ].filter((fact) => fact !== null)
  return (
    <li className={classes.row}>
      <div className={classes.facts}>
        <Group gap="xs">
          <Text fw={500}>{name}</Text>
          {kind !== name && <span className={classes.tag}>{kind}</span>}
        </Group>
        <Text size="sm" className="dim">
          {facts.join(' · ')}
        </Text>
      </div>
      <Group gap={4}>
        <Button
          size="compact-sm"
          variant="default"
          aria-label={`Test ${name}`}
          loading={trial?.state === 'running'}
          onClick={onTest}
        >
          Test
        </Button>
        <Button size="compact-sm" variant="default" aria-label={`Edit ${name}`} onClick={onEdit}>
          Edit
        </Button>
        {source !== 'built-in' && (
          <Button size="compact-sm" variant="subtle" color="red" aria-label={`Delete ${name}`} onClick={onDelete}>
            Delete
          </Button>
        )}
      </Group>
      <div className={classes.wide} role="status">
        {trial && trial.state !== 'running' && (
          <Text size="sm" style={{ color: `var(--${trial.state === 'works' ? 'completed' : 'failed'})` }}>
            {trial.text}
          </Text>
        )}
      </div>
    </li>
  )
}
