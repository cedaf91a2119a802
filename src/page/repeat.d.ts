// The types of the file that the server sends as repeat.js.
export * from 'lit-html/directives/repeat.js'
