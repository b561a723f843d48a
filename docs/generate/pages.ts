// Parts of the pages in docs/ are made from the source: text between `<!-- generated: name -->` and `<!-- end -->`. A
// test tells when a page is not what it would be now; `npm run docs` writes the pages anew.
import { readFile } from 'node:fs/promises'
import { exampleSections } from './example-sections.ts'
import { agentSections, reactionSections, settingSections } from './field-sections.ts'
import { flowSections } from './flow-sections.ts'
import { toolSections } from './tool-sections.ts'

export const docsFolder = new URL('../', import.meta.url)

/** The sections of each page, by name. */
const PAGES: Readonly<Record<string, () => Promise<Record<string, string>>>> = {
  'flows.md': flowSections,
  'tools.md': toolSections,
  'app-modules.md': async () => ({ ...(await exampleSections()), ...reactionSections() }),
  'agents.md': agentSections,
  'settings.md': settingSections,
}

/** Each page as it is, and as it would be now. */
export async function generatePages(): Promise<{ name: string; before: string; now: string }[]> {
  return Promise.all(
    Object.entries(PAGES).map(async ([name, sections]) => {
      const before = await readFile(new URL(name, docsFolder), 'utf8')
      return { name, before, now: fill(name, before, await sections()) }
    }),
  )
}

const SECTION = /<!-- generated: ([\w-]+) -->\n[\s\S]*?<!-- end -->/g

/** Throws where a page lacks a section, or names one that there is not. */
function fill(page: string, text: string, sections: Readonly<Record<string, string>>): string {
  const used = new Set<string>()
  const filled = text.replaceAll(SECTION, (_, name: string) => {
    const section = sections[name]
    if (section === undefined) throw new Error(`${page}: there is no section called ${name}`)
    used.add(name)
    return `<!-- generated: ${name} -->\n${section.trim()}\n<!-- end -->`
  })
  const missing = Object.keys(sections).filter((name) => !used.has(name))
  if (missing.length > 0) throw new Error(`${page} has no place for ${missing.join(', ')}`)
  return filled
}
