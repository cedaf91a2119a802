// The entry of the page: draws what fits the session.
import { html, render } from './lit-html.js'

render(html`<main><h1>Latchkey</h1></main>`, document.body)
