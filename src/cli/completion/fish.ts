/** fish quotes what it inserts, and completes files itself where no completion applies. */
export const fish = (name: string, id: string) => `# fish completion for ${name}; made by: ${name} completion fish
function __${id}_complete
    set -g __${id}_values
    set -l words (commandline -opc)
    set -l answer (command ${name} _complete --shell fish -- $words[2..-1] (commandline -ct) 2>/dev/null </dev/null)
    switch "$answer[1]"
        case files
            return 1
        case folders
            set -g __${id}_values (__fish_complete_directories (commandline -ct))
        case '*'
            set -g __${id}_values $answer[2..-1]
    end
    return 0
end
complete -c ${name} -e
complete -c ${name} -n __${id}_complete -f -k -a '$__${id}_values'
`;
