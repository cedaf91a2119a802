// Configures arktype before it is loaded: shapes are interpreted, not compiled, which halves the start time of every command.
import { configure } from 'arktype/config'

configure({ jitless: true })
