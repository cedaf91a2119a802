// Preloaded into a process of the program: on SIGUSR2, the process writes the paths of its modules to MODULES_FILE.
import { renameSync, writeFileSync } from 'node:fs'

process.on('SIGUSR2', () => {
  const path = process.env.MODULES_FILE ?? ''
  writeFileSync(`${path}.new`, Object.keys(require.cache).join('\n'))
  renameSync(`${path}.new`, path)
})
