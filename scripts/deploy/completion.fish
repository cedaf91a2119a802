# fish completion for latchkey: put this file in ~/.config/fish/completions as latchkey.fish
function __latchkey_complete
    set -l before (commandline -opc)
    set -l current (commandline -ct)
    set -l lines ($before[1] __complete $before[2..-1] "$current" 2>/dev/null)
    if test "$lines[1]" = files
        __fish_complete_path "$current"
        return
    end
    test (count $lines) -gt 1; and printf '%s\n' $lines[2..-1]
end
complete -c latchkey -f -a '(__latchkey_complete)'
