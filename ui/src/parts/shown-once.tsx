import { Alert, Button, CopyButton, Group, Stack, Text, TextInput } from '@mantine/core'
import { Check, Copy } from 'lucide-react'
import { useEffect, useRef } from 'react'

/** A secret or a link that Muster shows only now. */
export function ShownOnce(props: { title: string; value: string; hint: string; onClose: () => void }) {
  const input = useRef<HTMLInputElement>(null)
  // The dialog that made the value gives the focus back first.
  useEffect(() => {
    const timer = setTimeout(() => input.current?.focus())
    return () => clearTimeout(timer)
  }, [])
  return (
    <Alert
      color="green"
      title={props.title}
      role="status"
      withCloseButton
      closeButtonLabel="Hide it"
      onClose={props.onClose}
    >
      <Stack gap="xs">
        <Text size="sm">{props.hint}</Text>
        <Group gap="xs" wrap="nowrap">
          <TextInput
            aria-label={props.title}
            size="xs"
            flex={1}
            readOnly
            value={props.value}
            classNames={{ input: 'mono' }}
            onFocus={(event) => event.currentTarget.select()}
            ref={input}
          />
          <CopyButton value={props.value} timeout={3_000}>
            {({ copied, copy }) => (
              <Button
                size="xs"
                variant="default"
                leftSection={copied ? <Check size={13} aria-hidden /> : <Copy size={13} aria-hidden />}
                onClick={copy}
              >
                {copied ? 'Copied' : 'Copy'}
              </Button>
            )}
          </CopyButton>
        </Group>
      </Stack>
    </Alert>
  )
}
