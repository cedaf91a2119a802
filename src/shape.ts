// arktype as this program uses it. Import `type` from here, never from the package, so that its configuration comes first.
import './shape-config.ts'

export { type } from 'arktype'
