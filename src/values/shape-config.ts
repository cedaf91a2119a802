// Loaded before arktype: its shapes are interpreted, not compiled, which halves the time that every command takes to start.
import { configure } from 'arktype/config'

configure({ jitless: true })
