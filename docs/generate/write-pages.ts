import { writeFile } from 'node:fs/promises'
import { docsFolder, generatePages } from './pages.ts'

for (const { name, before, now } of await generatePages()) {
  if (before === now) continue
  await writeFile(new URL(name, docsFolder), now)
  process.stdout.write(`docs/${name} is written anew\n`)
}
