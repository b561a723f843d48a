// Loading, failed, empty and stale: every list and panel shows these four alike.

import { Alert, Button, Group, Skeleton, Stack, Text } from '@mantine/core'
import { RotateCw, TriangleAlert } from 'lucide-react'
import { type ReactNode, useEffect, useState } from 'react'
import { errorText } from '../../../src/kernel/error-text.ts'

/** After this time people want to know that something is amiss. */
const LONG_MS = 8_000

export function Loading({ lines = 4 }: { lines?: number }) {
  const [isLong, setIsLong] = useState(false)
  useEffect(() => {
    const timer = setTimeout(() => setIsLong(true), LONG_MS)
    return () => clearTimeout(timer)
  }, [])
  return (
    <Stack gap="sm" p="md" role="status" aria-label="Loading">
      {isLong && <Text size="sm">Muster takes long to answer. The page appears as soon as it does.</Text>}
      {Array.from({ length: lines }, (_, line) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the lines never change their order
        <Skeleton key={line} height={14} width={`${90 - ((line * 23) % 45)}%`} animate={line === 0} />
      ))}
    </Stack>
  )
}

export function Failure({ what, error, onRetry }: { what: string; error: unknown; onRetry?: () => void }) {
  return (
    <Alert color="red" icon={<TriangleAlert size={16} aria-hidden />} title={what} role="alert">
      <Stack gap="xs" align="flex-start">
        <Text size="sm">{errorText(error)} Work under way goes on.</Text>
        {onRetry && (
          <Button
            size="compact-sm"
            variant="default"
            leftSection={<RotateCw size={13} aria-hidden />}
            onClick={onRetry}
          >
            Retry
          </Button>
        )}
      </Stack>
    </Alert>
  )
}

/** One sentence and the first action. */
export function Empty({ children, action }: { children: ReactNode; action?: ReactNode }) {
  return (
    <Stack align="center" gap="md" py={48} px="md">
      <Text className="dim" ta="center" maw={440}>
        {children}
      </Text>
      {action}
    </Stack>
  )
}

/** Old data stays, and is marked. */
export function Stale({ onRetry }: { onRetry: () => void }) {
  return (
    <Group gap="xs" role="status" style={{ color: 'var(--blocked)' }}>
      <TriangleAlert size={14} aria-hidden />
      <Text size="sm" inherit>
        This may be out of date: the live connection to Muster is lost.
      </Text>
      <Button size="compact-xs" variant="default" onClick={onRetry}>
        Retry
      </Button>
    </Group>
  )
}
