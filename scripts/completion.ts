// `latchkey completion`: the scripts by which shells complete commands, options and names. The program itself suggests them.
import { Argument, type Command } from 'commander'
import bash from './deploy/completion.bash' with { type: 'text' }
import fish from './deploy/completion.fish' with { type: 'text' }
import zsh from './deploy/completion.zsh' with { type: 'text' }
import { command, givenTo, print, runAlone, withSettings } from './shared/command-line.ts'

const scripts = { bash, zsh, fish }

export function completionCommand(): Command {
  const made = command('completion', 'Print a script that completes commands, options and names in a shell', [
    'completion bash > /etc/bash_completion.d/latchkey',
    'completion zsh > "$fpath[1]/_latchkey"',
    'completion fish > ~/.config/fish/completions/latchkey.fish',
  ]).addArgument(new Argument('<shell>', 'the shell').choices(Object.keys(scripts)))
  return withSettings(made, { shown: [] }).action((...all: unknown[]) => {
    const { words, options } = givenTo(all)
    const shell = words[0] as keyof typeof scripts
    print(options.json === true ? JSON.stringify({ shell, text: scripts[shell] }) : scripts[shell].trimEnd())
  })
}

if (import.meta.main) await runAlone(completionCommand())
