// One prompt: two of its variants side by side, and the versions of the first.
import { Button, Group, Select, Stack, Text, Title } from '@mantine/core'
import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { Copy, Pencil, Trash2 } from 'lucide-react'
import { useState } from 'react'
import { ApiError } from '../../api/client.ts'
import type { ListedPrompt, Prompt } from '../../api/prompt-shapes.ts'
import { promptQuery, type VariantKey, versionsQuery } from '../../api/prompts.ts'
import { useMe } from '../../app/gate.tsx'
import { useRole } from '../../app/role.ts'
import { TextDiff } from '../../parts/diff.tsx'
import { Failure, Loading } from '../../parts/states.tsx'
import { When } from '../../parts/when.tsx'
import { DeleteDialog } from './prompt-dialogs.tsx'
import { PromptEditor } from './prompt-editor.tsx'
import { ALONE, authorOf, chooseVariants, groupPrompts, namesOfLive, textOf } from './prompt-text.ts'
import classes from './prompts.module.css'
import { useOpenVariant } from './use-open-variant.ts'
import { VersionsPanel } from './versions-panel.tsx'

const route = getRouteApi('/projects/$projectId/prompts')

interface Props {
  projectId: string
  promptId: string
  prompts: readonly ListedPrompt[]
}

export function PromptPanel({ projectId, promptId, prompts }: Props) {
  const asked = route.useSearch()
  const open = useOpenVariant(projectId)
  const group = groupPrompts(prompts).find((each) => each.promptId === promptId)
  const names = group ? namesOfLive(group) : []
  const { variant, other } = chooseVariants(names, asked)
  if (variant === null) return <Text className="dim">There is no prompt with the name {promptId}.</Text>
  const key: VariantKey = { projectId, promptId, variantId: variant }
  const isLive = names.includes(variant)
  return (
    <Stack gap="md">
      <Group justify="space-between" gap="sm">
        <Title order={2}>{promptId}</Title>
        <Group gap="xs">
          <Select
            label="Variant"
            size="xs"
            w={130}
            allowDeselect={false}
            data={[...new Set([...names, variant])]}
            value={variant}
            onChange={(value) => void open(promptId, value, value === other ? null : asked.with)}
          />
          <Select
            label="Compare with"
            size="xs"
            w={130}
            allowDeselect={false}
            data={[
              { value: ALONE, label: 'nothing' },
              ...names.filter((name) => name !== variant).map((name) => ({ value: name, label: name })),
            ]}
            value={other ?? ALONE}
            onChange={(value) => void open(promptId, variant, value)}
          />
        </Group>
      </Group>
      {isLive ? (
        <>
          <Texts key={`${variant} ${other}`} variantKey={key} other={other} isRequired={group?.isRequired ?? false} />
          <VersionsPanel key={variant} variantKey={key} />
        </>
      ) : (
        <Gone key={variant} variantKey={key} />
      )}
    </Stack>
  )
}

/** A variant that is not listed was deleted, or never existed. */
function Gone({ variantKey }: { variantKey: VariantKey }) {
  const { promptId, variantId } = variantKey
  const versions = useInfiniteQuery(versionsQuery(variantKey))
  if (versions.error instanceof ApiError && versions.error.status === 404) {
    return (
      <Text className="dim">
        {promptId} has no variant {variantId}.
      </Text>
    )
  }
  return (
    <>
      {versions.data && (
        <Text role="status" className={classes.note}>
          The variant {variantId} was deleted. Roll back to one of its versions, and it is there again.
        </Text>
      )}
      <VersionsPanel variantKey={variantKey} />
    </>
  )
}

function Texts(props: { variantKey: VariantKey; other: string | null; isRequired: boolean }) {
  const { variantKey, other, isRequired } = props
  const prompt = useQuery(promptQuery(variantKey))
  const beside = useQuery({
    ...promptQuery({ ...variantKey, variantId: other ?? variantKey.variantId }),
    enabled: other !== null,
  })
  const failed = prompt.isError && !prompt.data ? prompt : other !== null && beside.isError ? beside : null
  if (failed?.error instanceof ApiError && failed.error.status === 404) {
    return <Text className="dim">{failed.error.message}</Text>
  }
  if (failed) {
    return <Failure what="The prompt could not be read." error={failed.error} onRetry={() => void failed.refetch()} />
  }
  if (!prompt.data || (other !== null && !beside.data)) return <Loading lines={10} />
  return (
    <>
      <Group justify="space-between" gap="xs">
        <div>
          <Facts of={prompt.data} />
          {other !== null && beside.data && <Facts of={beside.data} />}
        </div>
        <Actions prompt={prompt.data} variantKey={variantKey} isRequired={isRequired} />
      </Group>
      {other !== null && beside.data ? (
        <TextDiff
          before={textOf(prompt.data.messages)}
          after={textOf(beside.data.messages)}
          names={[variantKey.variantId, other]}
        />
      ) : (
        <Messages of={prompt.data} />
      )}
    </>
  )
}

function Facts({ of }: { of: Prompt }) {
  const me = useMe()
  return (
    <>
      <Text size="sm" className="dim">
        <b>{of.variant_id}</b> · version {of.version} ·{' '}
        {of.seeded ? (
          'as it came with Muster; it follows new releases until somebody edits it'
        ) : (
          <>
            by {authorOf(of, me)}, <When at={of.created_at} />
          </>
        )}
      </Text>
      {of.unknown_variables.length > 0 && (
        <Text size="sm" className={classes.note}>
          {of.unknown_variables.map((name) => `{{${name}}}`).join(', ')} in {of.variant_id}: not a variable, so it is
          sent unchanged.
        </Text>
      )}
    </>
  )
}

function Messages({ of }: { of: Prompt }) {
  return (
    <div className={classes.text}>
      {of.messages.map(({ role, content }, place) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the messages of a version never change their order
        <div key={place} className={classes.message}>
          <span className="dim">{role}</span>
          <pre>{content}</pre>
        </div>
      ))}
    </div>
  )
}

function Actions({ prompt, variantKey, isRequired }: { prompt: Prompt; variantKey: VariantKey; isRequired: boolean }) {
  const isAdmin = useRole(variantKey.projectId) === 'admin'
  const open = useOpenVariant(variantKey.projectId)
  const [dialog, setDialog] = useState<'edit' | 'copy' | 'delete' | null>(null)
  const close = (): void => setDialog(null)
  if (!isAdmin) return null
  return (
    <Group gap="xs">
      <Button
        size="xs"
        variant="default"
        leftSection={<Pencil size={13} aria-hidden />}
        onClick={() => setDialog('edit')}
      >
        Edit
      </Button>
      <Button
        size="xs"
        variant="default"
        leftSection={<Copy size={13} aria-hidden />}
        onClick={() => setDialog('copy')}
      >
        New variant
      </Button>
      <Button
        size="xs"
        variant="light"
        color="red"
        leftSection={<Trash2 size={13} aria-hidden />}
        onClick={() => setDialog('delete')}
      >
        Delete
      </Button>
      {dialog === 'edit' && <PromptEditor of={{ type: 'version', key: variantKey, prompt }} onClose={close} />}
      {dialog === 'copy' && (
        <PromptEditor
          of={{ type: 'new variant', key: variantKey, prompt }}
          onClose={close}
          onSaved={(saved) => void open(saved.promptId, saved.variantId, variantKey.variantId)}
        />
      )}
      {dialog === 'delete' && <DeleteDialog variantKey={variantKey} isRequired={isRequired} onClose={close} />}
    </Group>
  )
}
