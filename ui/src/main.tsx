// The console: one page, served as static files by the API server.
import '@fontsource-variable/inter'
import '@mantine/core/styles.css'
import '@mantine/notifications/styles.css'
import './app/console.css'
import { MantineProvider } from '@mantine/core'
import { Notifications } from '@mantine/notifications'
import { QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { config } from 'zod'
import { queries } from './api/queries.ts'
import { mendStyles } from './app/mend-styles.ts'
import { theme } from './app/theme.ts'
import { router } from './router.tsx'

// The page's policy forbids code that is made of text, which zod would try.
config({ jitless: true })

mendStyles()
const root = document.getElementById('root')
if (!root) throw new Error('index.html has no element with the id root')

createRoot(root).render(
  <StrictMode>
    <MantineProvider theme={theme} defaultColorScheme="auto">
      <QueryClientProvider client={queries}>
        <Notifications position="bottom-right" limit={3} />
        <RouterProvider router={router} />
      </QueryClientProvider>
    </MantineProvider>
  </StrictMode>,
)
