// The preset of the benches: a model with a few settings, one tool and a system prompt, as a body and as what is kept of it.
const parameters = { type: 'object', properties: { query: { type: 'string' } }, required: ['query'] }
const settings = {
  model: 'vendor/model',
  temperature: 0.2,
  max_tokens: 500,
  tools: [{ type: 'function', function: { name: 'search', description: 'Searches the handbook', parameters } }],
}
export const presetPrompt = 'You are a helpful assistant that answers in plain English and keeps it short.'
export const presetConfig = JSON.stringify(settings)
export const presetBody = JSON.stringify({ ...settings, messages: [{ role: 'system', content: presetPrompt }] })
/** Presets that posts go to in turn. */
export const presetsPosted = 50
