import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'
import { usedStyles } from './used-styles.ts'

/** The address of a running Muster, for `npx vite ui`: the page is served with changes as they are made. */
const MUSTER = 'http://127.0.0.1:8080'

/** Packages that every page needs: one file of them is smaller than many, and is kept when the pages change. */
const FRAME =
  /node_modules\/(react|react-dom|scheduler|react-transition-group|@floating-ui|@tanstack\/(history|query-core|react-query|react-router|react-store|router-core|store)|@mantine\/(core\/esm\/core|hooks|notifications|store))\//

// biome-ignore lint/style/noDefaultExport: vite reads the default export
export default defineConfig({
  root: import.meta.dirname,
  plugins: [react(), usedStyles()],
  build: {
    outDir: 'dist',
    emptyOutDir: true,
    target: 'es2023',
    chunkSizeWarningLimit: 800,
    rolldownOptions: { output: { codeSplitting: { groups: [{ name: 'frame', test: FRAME }] } } },
  },
  server: { proxy: Object.fromEntries(['/api', '/v1', '/sign-in'].map((path) => [path, MUSTER])) },
})
