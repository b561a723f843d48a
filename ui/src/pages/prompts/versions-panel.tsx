// Every version of a variant, newest first: who wrote it, when, what it changed, and the way back to it.
import { Button, Group, Select, Stack, Table, Title } from '@mantine/core'
import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { GitCompareArrows, Undo2 } from 'lucide-react'
import { useState } from 'react'
import type { Version } from '../../api/prompt-shapes.ts'
import { type VariantKey, versionDiffQuery, versionsQuery } from '../../api/prompts.ts'
import { useMe } from '../../app/gate.tsx'
import { useRole } from '../../app/role.ts'
import { Diff } from '../../parts/diff.tsx'
import { More } from '../../parts/more.tsx'
import { Failure, Loading } from '../../parts/states.tsx'
import { When } from '../../parts/when.tsx'
import { WideTable } from '../../parts/wide-table.tsx'
import { RollBackDialog } from './prompt-dialogs.tsx'
import { authorOf } from './prompt-text.ts'

interface Pair {
  from: number
  to: number
}

export function VersionsPanel({ variantKey }: { variantKey: VariantKey }) {
  const list = useInfiniteQuery(versionsQuery(variantKey))
  const [pair, setPair] = useState<Pair | null>(null)
  const [target, setTarget] = useState<number | null>(null)
  const versions = list.data?.pages.flatMap(({ items }) => items) ?? []
  const newest = versions[0]?.version
  return (
    <Stack gap="xs" component="section" aria-label={`Versions of ${variantKey.variantId}`}>
      <Title order={2}>Versions of {variantKey.variantId}</Title>
      {list.isPending && <Loading lines={3} />}
      {list.isError && (
        <Failure what="The versions could not be read." error={list.error} onRetry={() => void list.refetch()} />
      )}
      {pair && (
        <Compared
          variantKey={variantKey}
          pair={pair}
          versions={versions}
          onChange={setPair}
          onClose={() => setPair(null)}
        />
      )}
      {newest !== undefined && (
        <VersionTable
          versions={versions}
          newest={newest}
          projectId={variantKey.projectId}
          onCompare={setPair}
          onRollBack={setTarget}
        />
      )}
      <More list={list} />
      {target !== null && newest !== undefined && (
        <RollBackDialog variantKey={variantKey} to={target} newest={newest} onClose={() => setTarget(null)} />
      )}
    </Stack>
  )
}

function VersionTable(props: {
  versions: readonly Version[]
  newest: number
  projectId: string
  onCompare: (pair: Pair) => void
  onRollBack: (version: number) => void
}) {
  const { versions, newest, projectId, onCompare, onRollBack } = props
  const me = useMe()
  const isAdmin = useRole(projectId) === 'admin'
  return (
    <WideTable name="Table of versions" minWidth={520}>
      <Table.Thead>
        <Table.Tr>
          {['Version', 'Who', 'When', 'What', 'Actions'].map((name) => (
            <Table.Th key={name} className="dim" fw={500}>
              {name === 'Actions' ? <span className="visually-hidden">{name}</span> : name}
            </Table.Th>
          ))}
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {versions.map((version) => (
          <Table.Tr key={version.version}>
            <Table.Td className="number">{version.version}</Table.Td>
            <Table.Td>{authorOf(version, me)}</Table.Td>
            <Table.Td className="dim">
              <When at={version.created_at} />
            </Table.Td>
            <Table.Td>{noteOf(version, newest)}</Table.Td>
            <Table.Td>
              <Group gap={4} justify="flex-end" wrap="nowrap">
                {version.version > 1 && (
                  <Button
                    size="compact-xs"
                    variant="subtle"
                    leftSection={<GitCompareArrows size={12} aria-hidden />}
                    aria-label={`Changes in version ${version.version}`}
                    onClick={() => onCompare({ from: version.version - 1, to: version.version })}
                  >
                    Changes
                  </Button>
                )}
                {isAdmin && version.messages !== null && version.version !== newest && (
                  <Button
                    size="compact-xs"
                    variant="subtle"
                    leftSection={<Undo2 size={12} aria-hidden />}
                    aria-label={`Roll back to version ${version.version}`}
                    onClick={() => onRollBack(version.version)}
                  >
                    Roll back
                  </Button>
                )}
              </Group>
            </Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </WideTable>
  )
}

function noteOf({ version, messages, seeded, rolled_back_to }: Version, newest: number): string {
  const notes = [
    version === newest && messages !== null ? 'in use' : null,
    messages === null ? 'deleted the variant' : null,
    seeded ? 'came with Muster' : null,
    rolled_back_to === null ? null : `rolled back to version ${rolled_back_to}`,
  ].filter((note) => note !== null)
  return notes.length === 0 ? 'edited' : notes.join(', ')
}

function Compared(props: {
  variantKey: VariantKey
  pair: Pair
  versions: readonly Version[]
  onChange: (pair: Pair) => void
  onClose: () => void
}) {
  const { variantKey, pair, versions, onChange, onClose } = props
  const diff = useQuery(versionDiffQuery(variantKey, pair.from, pair.to))
  const numbers = [...new Set([...versions.map(({ version }) => version), pair.from, pair.to])].sort((a, b) => b - a)
  const choices = numbers.map((number) => ({ value: String(number), label: `Version ${number}` }))
  return (
    <Stack gap="xs">
      <Group gap="xs" align="flex-end">
        {(['from', 'to'] as const).map((end) => (
          <Select
            key={end}
            label={end === 'from' ? 'From' : 'To'}
            size="xs"
            w={130}
            allowDeselect={false}
            data={choices}
            value={String(pair[end])}
            onChange={(value) => onChange({ ...pair, [end]: Number(value) })}
          />
        ))}
        <Button size="xs" variant="default" onClick={onClose}>
          Close
        </Button>
      </Group>
      {diff.isPending && <Loading />}
      {diff.isError && (
        <Failure what="The difference could not be read." error={diff.error} onRetry={() => void diff.refetch()} />
      )}
      {diff.data && (
        <Diff
          key={`${pair.from} ${pair.to}`}
          parts={diff.data.parts}
          names={[`Version ${pair.from}`, `Version ${pair.to}`]}
          isFolded
        />
      )}
    </Stack>
  )
}
