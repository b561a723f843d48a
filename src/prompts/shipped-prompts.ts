// The prompts that come with Muster: the files of `prompts/`, one folder per prompt and one file per variant. A project
// gets rows of its own with its first edit, which keeps the replaced text as version 1; from then on no release changes
// that prompt of that project.
//
// Rows for every project from the start were rejected. They would have to be made for all projects at each release,
// projects that changed nothing would keep texts that no longer fit the program, and two releases that run side by side
// would overwrite each other's rows.
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isPromptName, type PromptMessage } from '../kernel/prompt.ts'
import { parsePromptText } from './prompt-text.ts'

interface ShippedPrompt {
  promptId: string
  variantId: string
  messages: PromptMessage[]
}

export interface ShippedPrompts {
  find(promptId: string, variantId: string): PromptMessage[] | null
  /** All prompts in the order of their names. */
  all: readonly ShippedPrompt[]
}

const shippedFolder = fileURLToPath(new URL('../../prompts', import.meta.url))

/** Throws if a file is no prompt, and names the file. */
export async function loadShippedPrompts(folder = shippedFolder): Promise<ShippedPrompts> {
  const folders = (await readdir(folder, { withFileTypes: true })).filter((entry) => entry.isDirectory())
  const loaded = await Promise.all(folders.map(({ name }) => loadVariants(folder, name)))
  return shippedPrompts(loaded.flat())
}

export function shippedPrompts(prompts: readonly ShippedPrompt[]): ShippedPrompts {
  const byName = new Map(prompts.map((prompt) => [nameOf(prompt.promptId, prompt.variantId), prompt.messages]))
  return {
    find: (promptId, variantId) => byName.get(nameOf(promptId, variantId)) ?? null,
    all: prompts.toSorted((a, b) => compareText(a.promptId, b.promptId) || compareText(a.variantId, b.variantId)),
  }
}

/** Compares names as the database does: code by code. */
export const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

async function loadVariants(folder: string, promptId: string): Promise<ShippedPrompt[]> {
  const files = await readdir(join(folder, promptId))
  return Promise.all(files.map((file) => loadVariant(join(folder, promptId, file), promptId, file)))
}

async function loadVariant(path: string, promptId: string, file: string): Promise<ShippedPrompt> {
  try {
    const variantId = file.replace(/\.txt$/, '')
    if (variantId === file || !isPromptName(variantId) || !isPromptName(promptId)) {
      throw new Error('its name must be <prompt>/<variant>.txt')
    }
    return { promptId, variantId, messages: parsePromptText(await readFile(path, 'utf8')) }
  } catch (error) {
    throw new Error(`The prompt ${path} cannot be used: ${error instanceof Error ? error.message : error}.`, {
      cause: error,
    })
  }
}

const nameOf = (promptId: string, variantId: string): string => `${promptId} ${variantId}`
