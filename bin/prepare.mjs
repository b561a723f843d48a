// Builds the console when Muster is installed, so that `npm start` serves files. An image that holds only what it runs
// has neither the sources nor vite: the console was built before.
import { existsSync } from 'node:fs'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { constants, gzipSync } from 'node:zlib'

const ui = new URL('../ui/', import.meta.url)
const vite = existsSync(new URL('index.html', ui)) ? await import('vite').catch(() => null) : null
if (vite === null) {
  console.log('The console is not built here: ui/ or vite is missing.')
} else {
  await vite.build({ configFile: new URL('vite.config.ts', ui).pathname, logLevel: 'warn' })
  await compress(new URL('dist/assets/', ui))
}

/** The server sends the compressed file to browsers that take it. */
async function compress(folder) {
  for (const name of await readdir(folder)) {
    if (!/\.(js|css|svg)$/.test(name)) continue
    const file = new URL(name, folder)
    await writeFile(`${file.pathname}.gz`, gzipSync(await readFile(file), { level: constants.Z_BEST_COMPRESSION }))
  }
}
