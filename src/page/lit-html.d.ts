// The types of the file that the server sends as lit-html.js.
export * from 'lit-html'
