import { z } from 'zod'
import { idField, instantField, jsonObject } from './fields.ts'

/** The server's part of an agent's tool names: `mcp:<server>/<tool>`. */
export const mcpServerName = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/, 'must be letters, digits, dots, dashes; at most 63 characters')

const url = z
  .string()
  .max(2_000)
  .refine((text) => {
    const parsed = URL.parse(text)
    return parsed !== null && /^https?:$/.test(parsed.protocol) && !parsed.username && !parsed.password
  }, 'must be an http or https URL without user or password')

// Control characters are refused: a NUL cannot be handed to a process, and a line break would end a header.
const argument = z
  .string()
  .max(8_192)
  .regex(/^[^\0]*$/, 'must not hold a NUL character')
const headerName = z.string().regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$/, 'must be the name of a header')
const headerValue = z
  .string()
  .max(16_384)
  .regex(/^[\t\x20-\x7e\x80-\xff]*$/, 'must be one line of text')

// Variables of the dynamic loader are refused: they would affect the programs that start the server's program.
const variableName = z
  .string()
  .regex(/^(?!LD_)[A-Za-z_][A-Za-z0-9_]{0,99}$/, 'must be the name of a variable, and none that begins with LD_')

export const mcpServerInput = z
  .strictObject({
    name: mcpServerName,
    url: url.optional().describe('A server that speaks streamable HTTP.'),
    command: argument
      .min(1)
      .optional()
      .describe('A program that speaks MCP on its standard input and output. Only the instance admin may set one.'),
    args: z.array(argument).max(100).optional().describe('The arguments of the program. No shell reads them.'),
    headers: z
      .record(headerName, headerValue)
      .refine((headers) => Object.keys(headers).length <= 50, 'must be at most 50 headers')
      .optional()
      .describe('Sent with every request. Write-only, encrypted at rest.'),
    env: z
      .record(variableName, argument.max(16_384))
      .refine((env) => Object.keys(env).length <= 50, 'must be at most 50 variables')
      .optional()
      .describe('Variables of the program, beside PATH and HOME. Write-only, encrypted at rest.'),
  })
  .refine((input) => (input.url === undefined) !== (input.command === undefined), 'needs either url or command')
  .refine((input) => input.args === undefined || input.command !== undefined, 'args belong to a command')
  .refine((input) => input.headers === undefined || input.url !== undefined, 'headers belong to a url')
  .refine((input) => input.env === undefined || input.command !== undefined, 'env belongs to a command')
export type McpServerInput = z.infer<typeof mcpServerInput>

/** A tool as it was read from the server. `hash` covers the other fields: another hash is another tool. */
export const mcpToolEntry = z.strictObject({
  name: z.string(),
  description: z.string(),
  input_schema: jsonObject,
  effect: z.enum(['readonly', 'keyed', 'unsafe']),
  hash: z.string(),
})
export type McpToolEntry = z.infer<typeof mcpToolEntry>

export const mcpServerSchema = z.strictObject({
  id: idField,
  project_id: idField,
  name: mcpServerName,
  url: z.string().nullable().describe('Its query string is shown to admins only.'),
  command: z.string().nullable(),
  args: z.array(z.string()).describe('Only admins see the arguments; others see an asterisk for each.'),
  header_names: z.array(z.string()).describe('Header values are write-only; these are their names.'),
  env_names: z.array(z.string()).describe('Values of variables are write-only; these are their names.'),
  set_by_instance_admin: z.boolean().describe('True if the address may be a private one.'),
  tools: z
    .array(mcpToolEntry)
    .describe('The approved tools. Only these are called, and only while they are unchanged.'),
  pending_tools: z
    .array(mcpToolEntry)
    .nullable()
    .describe('The tools that the server was last seen to offer, if they differ from those that were approved.'),
  created_at: instantField,
  updated_at: instantField,
})
export type McpServer = z.infer<typeof mcpServerSchema>

export const mcpApproval = z
  .strictObject({
    hashes: z
      .array(z.string().max(100))
      .max(1_000)
      .optional()
      .describe(
        'The hashes of the tools that were looked at. If the server offers other tools by now, the answer is 409.',
      ),
  })
  .nullish()
export type McpApproval = z.infer<typeof mcpApproval>

const HIDDEN = '***'

/** Arguments and query strings often hold a secret of the server: a caller who may not set them may not read them. */
export const withoutSecrets = (server: McpServer): McpServer => ({
  ...server,
  url: server.url === null ? null : withoutQuery(server.url),
  args: server.args.map(() => HIDDEN),
})

export const withoutQuery = (url: string): string => url.replace(/[?#].*$/s, `?${HIDDEN}`)
