import { z } from 'zod'
import { idField, instantField, nameField } from './fields.ts'

export const hookInput = z.strictObject({ name: nameField })
export type HookInput = z.infer<typeof hookInput>

export const hookSchema = z.strictObject({
  id: idField,
  name: nameField,
  url: z.string().describe('The address that senders deliver to.'),
  created_at: instantField,
  last_used_at: instantField.nullable().describe('The time of the last delivery, to the minute.'),
  old_secret_until: instantField
    .nullable()
    .describe('Until this time the secret before the last rotation is valid too.'),
})
export type Hook = z.infer<typeof hookSchema>

export const newHookSchema = hookSchema.extend({
  secret: z
    .string()
    .describe('Signs deliveries (Standard Webhooks), or is sent as a bearer token. It is shown only here.'),
})
export type NewHook = z.infer<typeof newHookSchema>

export const deliveredSchema = z.strictObject({ run_id: idField })

/** The id tells a repeated delivery from a new one. */
export const isWebhookId = (text: string): boolean => /^[\x21-\x7e]{1,255}$/.test(text)
