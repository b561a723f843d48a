// The words of identity as clients see them: keys, members, invitations, sessions, the audit log.
import { z } from 'zod'
import { emailField, idField, instantField, jsonObject, nameField } from './fields.ts'
import { roleField } from './role.ts'

export const keySchema = z.strictObject({
  id: idField,
  project_id: idField,
  name: nameField,
  role: roleField,
  prefix: z.string().describe('The first characters of the key, to recognise it by.'),
  expires_at: instantField.nullable(),
  last_used_at: instantField.nullable(),
  created_at: instantField,
})
export type Key = z.infer<typeof keySchema>
export const newKeySchema = keySchema.extend({ key: z.string().describe('The key itself. It is shown only here.') })
export const keyInput = z.strictObject({
  name: nameField,
  role: roleField,
  expires_at: z.iso.datetime({ offset: true }).nullish(),
})
export type KeyInput = z.infer<typeof keyInput>

export const memberSchema = z.strictObject({
  id: idField,
  project_id: idField,
  email: z.string(),
  name: z.string().nullable(),
  role: roleField,
  status: z.enum(['invited', 'active']),
  user_id: idField.nullable(),
  invitation_expires_at: instantField.nullable(),
  created_at: instantField,
})
export type Member = z.infer<typeof memberSchema>
export const invitedMemberSchema = memberSchema.extend({
  invitation_url: z.string().describe('A one-time link to send to the person. It is shown only here.'),
})
export const memberInput = z.strictObject({ email: emailField, role: roleField })
export const memberPatch = z.strictObject({ role: roleField })

const passwordField = z.string().min(8).max(200)
export const newPassword = z.strictObject({ password: passwordField })
export const passwordChange = z.strictObject({
  current_password: z.string().max(200).optional(),
  new_password: passwordField,
})
export const signInInput = z.strictObject({ email: emailField, password: z.string().min(1).max(200) })

export const invitationSchema = z.strictObject({
  email: z.string(),
  role: roleField,
  project: z.strictObject({ id: idField, name: nameField }),
  expires_at: instantField,
})
export const invitationAcceptance = z.strictObject({
  name: nameField.optional(),
  password: passwordField.optional(),
})

export const resetLinkSchema = z.strictObject({
  user_id: idField,
  email: z.string(),
  reset_url: z.string().describe('A one-time link to send to the person. It is shown only here.'),
  expires_at: instantField,
})
export const resetSchema = z.strictObject({ email: z.string(), expires_at: instantField })

export const meSchema = z.strictObject({
  type: z.enum(['instance_admin', 'key', 'user']),
  id: idField.nullable(),
  email: z.string().nullable(),
  name: z.string().nullable(),
  instance_admin: z.boolean(),
  has_password: z.boolean(),
  projects: z.array(z.strictObject({ id: idField, name: nameField, role: roleField })),
})

export const sessionSchema = z.strictObject({
  id: idField,
  current: z.boolean(),
  address: z.string().nullable(),
  user_agent: z.string().nullable(),
  created_at: instantField,
  last_seen_at: instantField,
  expires_at: instantField,
})
export const sessionListSchema = z.strictObject({ items: z.array(sessionSchema), next_cursor: z.null() })
export type ListedSession = z.infer<typeof sessionSchema>

export const auditEntrySchema = z.strictObject({
  id: idField,
  seq: z.int(),
  project_id: idField.nullable(),
  action: z.string(),
  actor: z.strictObject({
    type: z.enum(['instance_admin', 'key', 'user', 'agent', 'hook', 'system']),
    id: z.string().nullable(),
  }),
  actor_name: z.string().nullable().describe('The e-mail address of a person, or the name of a key or an agent.'),
  target: z.strictObject({ type: z.string().nullable(), id: z.string().nullable() }),
  target_name: z
    .string()
    .nullable()
    .describe(
      'The name or title of the target as it is now; of a deleted one as the entry noted it. Of a run its agent.',
    ),
  target_exists: z
    .boolean()
    .nullable()
    .describe('False: the target was deleted or revoked. Null: it is not looked up.'),
  details: jsonObject,
  request_id: z.string().nullable(),
  address: z.string().nullable(),
  at: instantField,
})
export type AuditEntry = z.infer<typeof auditEntrySchema>

/** The verdict on the audit log's chain. A `head` noted elsewhere shows later whether the log's end was cut off. */
export const auditVerdictSchema = z.discriminatedUnion('ok', [
  z.strictObject({
    ok: z.literal(true),
    blocks: z.int(),
    rows: z.int(),
    unsealed: z.int().describe('Rows that wait for the sealer; nothing vouches for them yet.'),
    head: z.string(),
  }),
  z.strictObject({ ok: z.literal(false), block: z.int(), reason: z.string() }),
])
export type AuditVerdict = z.infer<typeof auditVerdictSchema>
