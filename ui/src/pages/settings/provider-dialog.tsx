import { JsonInput, PasswordInput, Select, Textarea, TextInput } from '@mantine/core'
import { useForm } from '@mantine/form'
import type { Provider, ProviderInput } from '../../../../src/kernel/provider.ts'
import { patch, post } from '../../api/client.ts'
import { FormDialog } from '../../parts/form-dialog.tsx'
import { useWrite } from '../../parts/use-write.ts'
import { pricesFrom, pricesText } from './prices.ts'

const KINDS: { value: ProviderInput['kind']; label: string }[] = [
  { value: 'openai', label: 'OpenAI' },
  { value: 'anthropic', label: 'Anthropic' },
  { value: 'google', label: 'Google' },
  { value: 'google-vertex', label: 'Google Vertex' },
  { value: 'openai-compatible', label: 'OpenAI-compatible (Ollama, vLLM, …)' },
  { value: 'offline', label: 'Offline (for trying out)' },
]

interface Props {
  /** Null: a new one. */
  provider: Provider | null
  onSaved: (name: string, isNew: boolean) => void
  onClose: () => void
}

export function ProviderDialog({ provider, onSaved, onClose }: Props) {
  const { isBusy, problem, refused, write } = useWrite({
    fields: ['name', 'kind', 'base_url', 'api_key', 'prices', 'options'],
  })
  const form = useProviderForm(provider)
  const submit = form.onSubmit(({ name, kind, base_url, api_key, prices, options }) =>
    write(async () => {
      const given = {
        base_url: base_url.trim() === '' ? null : base_url.trim(),
        prices: pricesFrom(prices).prices,
        options: options.trim() === '' ? {} : (JSON.parse(options) as Record<string, unknown>), // checked above
        ...(api_key === '' ? {} : { api_key }),
      }
      if (provider) await patch(`/api/providers/${encodeURIComponent(provider.name)}`, given)
      else await post('/api/providers', { name, kind, ...given })
      onSaved(name, provider === null)
    }),
  )
  /** The name follows the kind until somebody types one. */
  const chooseKind = (kind: string | null): void => {
    if (kind === null) return
    if (!form.isTouched('name') || form.values.name === '') form.setFieldValue('name', kind)
    form.setFieldValue('kind', kind as ProviderInput['kind']) // one of the list
  }
  return (
    <FormDialog
      title={provider ? `Edit ${provider.name}` : 'Add provider'}
      action="Save"
      write={{ isBusy, problem }}
      onSubmit={() => submit()}
      onClose={onClose}
    >
      {!provider && (
        <>
          <Select
            label="Kind"
            data={KINDS}
            allowDeselect={false}
            value={form.values.kind}
            onChange={chooseKind}
            error={refused.kind}
            data-autofocus
          />
          <TextInput
            label="Name"
            description="Agents name the provider by it: lower-case letters, digits, dots and dashes."
            required
            {...form.getInputProps('name')}
            error={refused.name}
          />
        </>
      )}
      <TextInput
        label="Base URL"
        description={
          form.values.kind === 'openai-compatible'
            ? 'Where the server is, such as http://127.0.0.1:11434/v1.'
            : "Leave empty for the provider's default."
        }
        required={form.values.kind === 'openai-compatible'}
        {...form.getInputProps('base_url')}
        error={refused.base_url}
      />
      {form.values.kind !== 'offline' && (
        <PasswordInput
          label="API key"
          description={provider?.has_api_key ? 'A key is stored. Leave this empty to keep it.' : undefined}
          autoComplete="off"
          {...form.getInputProps('api_key')}
          error={refused.api_key}
        />
      )}
      <Textarea
        label="Prices"
        description="One model per line: its name, then USD per million tokens of input and of output."
        placeholder="gpt-5-mini 0.25 2"
        autosize
        minRows={1}
        maxRows={8}
        {...form.getInputProps('prices')}
        error={form.errors.prices ?? refused.prices}
      />
      <JsonInput
        label="Options"
        description='As JSON, rarely needed: {"project": …, "location": …} for Vertex, {"headers": …} for a gateway.'
        autosize
        minRows={1}
        maxRows={10}
        {...form.getInputProps('options')}
        error={form.errors.options ?? refused.options}
      />
    </FormDialog>
  )
}

function useProviderForm(provider: Provider | null) {
  return useForm({
    initialValues: {
      name: provider?.name ?? 'openai',
      kind: provider?.kind ?? 'openai',
      base_url: provider?.base_url ?? '',
      api_key: '',
      prices: pricesText(provider?.prices ?? {}),
      options: Object.keys(provider?.options ?? {}).length > 0 ? JSON.stringify(provider?.options, null, 2) : '',
    },
    validate: {
      prices: (text) => pricesFrom(text).problem,
      options: (text) => (isObjectText(text) ? null : 'This must be a JSON object.'),
    },
  })
}

function isObjectText(text: string): boolean {
  if (text.trim() === '') return true
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
  } catch {
    return false
  }
}
