// Any route of the API, with the same key, project and names as the other commands.
import type { CommandContext, Execute } from '../command.ts'
import { exitCodes, misused } from '../exit-codes.ts'
import { createNamedIds } from '../name-ids.ts'
import { readText } from '../read-input.ts'
import { createPieceReader, jsonText } from '../visible-text.ts'
import { openWorkplace } from '../workplace.ts'

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']

export const apiCommand: Execute = async (context, { args }) => {
  const [method = '', path = '', given] = args
  if (!METHODS.includes(method.toUpperCase()))
    throw misused(`The method must be ${METHODS.join(', ')}, not "${method}".`)
  const body = given === undefined ? undefined : parseBody(await readText(context, given))
  const answer = await context.client.open(...(await requestFor(context, { method: method.toUpperCase(), path, body })))
  const type = answer.headers.get('content-type') ?? ''
  if (/event-stream|ndjson/.test(type) && answer.body) await copy(context, answer.body)
  else print(context, await answer.text())
  return exitCodes.done
}

interface Wanted {
  method: string
  path: string
  body: unknown
}

/** A path of the instance is taken as it is. Routes below /v1 are told the project by a header. */
async function requestFor(
  context: CommandContext,
  { method, path, body }: Wanted,
): Promise<Parameters<CommandContext['client']['open']>> {
  const isOfProject = !path.startsWith('/')
  const isOfService = path.startsWith('/v1/')
  if (!isOfProject && !isOfService) return [path, { method, ...(body === undefined ? {} : { body }) }]
  const workplace = await openWorkplace(context)
  const names = createNamedIds(context, workplace)
  const headers = isOfService ? { 'x-project-id': workplace.project.id } : {}
  return [
    isOfProject ? workplace.path(await names.inPath(path)) : path,
    { method, headers, ...(body === undefined ? {} : { body: await names.inBody(body) }) },
  ]
}

async function copy({ out }: CommandContext, body: ReadableStream<Uint8Array>): Promise<void> {
  const decoder = new TextDecoder()
  const reader = createPieceReader()
  for await (const piece of body) out.write(reader.read(decoder.decode(piece, { stream: true })))
  out.write(reader.rest())
}

function print({ out }: CommandContext, text: string): void {
  if (text === '') return
  const value = tryJson(text)
  out.print(value === undefined ? text : jsonText(value, out.isTerminal ? 2 : 0))
}

function parseBody(text: string): unknown {
  const value = tryJson(text)
  if (value === undefined) throw misused('The body is not valid JSON.')
  return value
}

function tryJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
