/** fish quotes what it inserts, and completes files itself where no completion applies. */
export const fish = `# fish completion for meanwhile; made by: meanwhile completion fish
function __meanwhile_complete
    set -g __meanwhile_values
    set -l words (commandline -opc)
    set -l answer (command meanwhile _complete --shell fish -- $words[2..-1] (commandline -ct) 2>/dev/null </dev/null)
    switch "$answer[1]"
        case files
            return 1
        case folders
            set -g __meanwhile_values (__fish_complete_directories (commandline -ct))
        case '*'
            set -g __meanwhile_values $answer[2..-1]
    end
    return 0
end
complete -c meanwhile -e
complete -c meanwhile -n __meanwhile_complete -f -k -a '$__meanwhile_values'
`;
