// Mantine's one stylesheet has the styles of every component. The console gets those of the components that it uses,
// and of the components inside them, in Mantine's own order: half of the bytes before the first view.
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Plugin } from 'vite'

const ALWAYS = ['baseline', 'default-css-variables', 'global']
/** Packages whose components are made of Mantine's. */
const OTHERS = ['charts', 'notifications', 'spotlight']

export function usedStyles(): Plugin {
  return {
    name: 'used-styles',
    enforce: 'pre',
    load(id) {
      const [file = ''] = id.split('?')
      if (!file.endsWith('/@mantine/core/styles.css')) return null
      const folder = dirname(file)
      const whole = readFileSync(file, 'utf8')
      const parts = [...ALWAYS, ...usedModules(folder)].flatMap((name) => {
        const part = join(folder, 'styles', `${name}.css`)
        return existsSync(part) ? [readFileSync(part, 'utf8').trim()] : []
      })
      const places = new Map(parts.map((part) => [part, whole.indexOf(part)]))
      if ([...places.values()].includes(-1)) this.error('styles.css does not hold the styles of its components.')
      return [...places]
        .toSorted(([, a], [, b]) => a - b)
        .map(([part]) => part)
        .join('\n')
    },
  }
}

/** The names of Mantine's modules that the console's imports lead to. */
function usedModules(folder: string): Set<string> {
  const places = [
    join(import.meta.dirname, 'src/**/*.tsx'),
    ...OTHERS.map((name) => join(folder, `../${name}/esm/**/*.mjs`)),
  ]
  const sources = globSync(places).map((file) => readFileSync(file, 'utf8'))
  const imports = sources.flatMap((text) => [...text.matchAll(/import \{([^}]*)\} from ['"]@mantine\/core['"]/g)])
  const wanted = new Set(imports.flatMap(([, names = '']) => names.split(',').map((name) => name.trim())))
  const barrel = readFileSync(join(folder, 'esm/index.mjs'), 'utf8')
  const found = new Set<string>()
  const follow = (file: string): void => {
    if (found.has(file) || !existsSync(file)) return
    found.add(file)
    for (const [, next = ''] of readFileSync(file, 'utf8').matchAll(/from "(\.[^"]+)"/g))
      follow(join(dirname(file), next))
  }
  for (const [, names = '', path = ''] of barrel.matchAll(/import \{([^}]*)\} from "([^"]+)"/g)) {
    if (names.split(',').some((name) => wanted.has(name.trim().split(' as ').at(-1) ?? '')))
      follow(join(folder, 'esm', path))
  }
  return new Set([...found].map((file) => /([^/]+?)(?:\.module)?\.mjs$/.exec(file)?.[1] ?? ''))
}
