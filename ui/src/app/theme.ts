import { createTheme, type MantineColorsTuple } from '@mantine/core'

const indigo: MantineColorsTuple = [
  '#eef0ff',
  '#dde1ff',
  '#b8c0fb',
  '#98a4fa',
  '#7c8cf8',
  '#6273f0',
  '#4a5be0',
  '#3b4ac4',
  '#303d9f',
  '#27327f',
]

/** Near black, a little blue. */
const dark: MantineColorsTuple = [
  '#e6e8ee',
  '#b4b9c6',
  '#8f96a6',
  '#6a7183',
  '#3a4050',
  '#2a2f3c',
  '#1c202a',
  '#12151c',
  '#0d0f15',
  '#08090d',
]

export const theme = createTheme({
  primaryColor: 'indigo',
  primaryShade: 6,
  autoContrast: true,
  colors: { indigo, dark },
  fontFamily: "'Inter Variable', system-ui, sans-serif",
  fontFamilyMonospace: 'ui-monospace, SFMono-Regular, Menlo, Consolas, monospace',
  fontSizes: { xs: '11px', sm: '13px', md: '13px', lg: '15px', xl: '18px' },
  headings: {
    fontWeight: '600',
    sizes: { h1: { fontSize: '18px' }, h2: { fontSize: '15px' }, h3: { fontSize: '13px' } },
  },
  spacing: { xs: '6px', sm: '8px', md: '12px', lg: '16px', xl: '24px' },
  defaultRadius: 'sm',
  cursorType: 'pointer',
  respectReducedMotion: true,
  components: {
    // A closed list would stay in the page under the label of its field, and the label would name two things.
    Combobox: { defaultProps: { keepMounted: false } },
    // A number that is too small or too large is refused in words, and not changed behind the back of its author.
    NumberInput: { defaultProps: { clampBehavior: 'none' } },
    InputWrapper: { styles: { description: { color: 'var(--dim)' }, error: { color: 'var(--failed)' } } },
  },
})
