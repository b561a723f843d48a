import { Group, Stack, Text, Title } from '@mantine/core'
import type { ReactNode } from 'react'

/** A part of the settings: its name, a sentence about it, its main action at the right. */
export function Section(props: { name: string; about?: ReactNode; action?: ReactNode; children: ReactNode }) {
  return (
    <Stack component="section" gap="sm" aria-label={props.name}>
      <Group justify="space-between" align="flex-start" gap="sm">
        <div style={{ flex: '1 1 240px' }}>
          <Title order={2}>{props.name}</Title>
          {props.about && (
            <Text size="sm" className="dim">
              {props.about}
            </Text>
          )}
        </div>
        {props.action}
      </Group>
      {props.children}
    </Stack>
  )
}
