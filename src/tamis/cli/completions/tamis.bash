# bash completion of tamis: source it. Made by scripts/make-completions.
_tamis() {
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
    local command='' words=''
    [ "$COMP_CWORD" -gt 1 ] && command=${COMP_WORDS[1]}
    [ "$command" = subscriptions ] && [ "$COMP_CWORD" -gt 2 ] &&
        command="$command ${COMP_WORDS[2]}"
    [ "$command" = hardware ] && [ "$COMP_CWORD" -gt 2 ] &&
        command="$command ${COMP_WORDS[2]}"
    [ "$command" = workload ] && [ "$COMP_CWORD" -gt 2 ] &&
        command="$command ${COMP_WORDS[2]}"
    case "$command $previous" in
        'match --engine') words='auto automaton reference nfa stacks stacks-cuda pma twigstacks twigstacks-cuda' ;;
        'match --declared-encoding') words='check ignore' ;;
        'match --unsupported') words='refuse slow' ;;
        'match --on-bad-record') words='stop resume' ;;
        'match-events --engine') words='auto signature reference sff ocm ccm' ;;
        'match-events --by') words='subscription filter interface' ;;
        'transform --declared-encoding') words='check ignore' ;;
        'convert --from') words='eventbridge sns alertmanager' ;;
        'compile --unsupported') words='refuse slow' ;;
        'subscriptions create --kind') words='xpath events transform' ;;
        'subscriptions create --engine') words='auto automaton reference nfa stacks stacks-cuda pma twigstacks twigstacks-cuda' ;;
        'subscriptions create --unsupported') words='refuse slow' ;;
        'check --declared-encoding') words='check ignore' ;;
        'check --unsupported') words='refuse slow' ;;
        'check --against') words='lxml' ;;
        'select --declared-encoding') words='check ignore' ;;
        'select --unsupported') words='refuse slow' ;;
        'select --on-bad-record') words='stop resume' ;;
        'explain --declared-encoding') words='check ignore' ;;
        'explain --strategy') words='auto relative path-sharing-f path-sharing-fw path-sharing-fwr plan-sharing reference' ;;
        'serve --log') words='text json' ;;
        'subscribe --language') words='xpath events flwr' ;;
        'subscribe --payload') words='ids document nodes message' ;;
        'run --on-bad-record') words='stop resume' ;;
        'run --engine') words='auto automaton reference nfa stacks stacks-cuda pma twigstacks twigstacks-cuda' ;;
        'run --unsupported') words='refuse slow' ;;
        'run --declared-encoding') words='check ignore' ;;
        'schema --format') words='text json paths dot svg' ;;
        'hardware generate --system') words='shared wide NONT WONT WOWT WOWrT' ;;
        'hardware generate --outputs') words='chip cluster' ;;
        'hardware generate --rest') words='software refuse' ;;
        'hardware simulate --system') words='shared wide NONT WONT WOWT WOWrT' ;;
        'hardware simulate --outputs') words='chip cluster' ;;
        'hardware simulate --rest') words='software refuse' ;;
        'hardware report --system') words='shared wide NONT WONT WOWT WOWrT' ;;
        'hardware report --outputs') words='chip cluster' ;;
        'hardware report --rest') words='software refuse' ;;
        'workload queries --values-kind') words='numbers words' ;;
        'workload twigs --values-kind') words='numbers words' ;;
        'workload transformations --values-kind') words='numbers words' ;;
        'workload documents --values-kind') words='numbers words' ;;
    esac
    if [ -z "$words" ]; then
        case "$command" in
            '')
                words='match match-events transform convert compile subscriptions check select explain serve publish subscribe tail run schema hardware workload completion'
                [[ $current == -* ]] && words='-V --version --help -h' ;;
            'match')
                words=''
                [[ $current == -* ]] && words='-s --subscriptions --program --dtd --root --catalog --dtd-trust --engine --namespaces --ns --default-ns --declared-encoding --unsupported --skip-bad --record --on-bad-record --recursive --glob --concatenated --limit --threads --matching-only --nodes --values --output --help -h' ;;
            'match-events')
                words=''
                [[ $current == -* ]] && words='-s --subscriptions --engine --interfaces --by --skip-bad --matching-only --threads --limit --output --help -h' ;;
            'transform')
                words=''
                [[ $current == -* ]] && words='-s --subscriptions --namespaces --ns --default-ns --declared-encoding --skip-bad --recursive --glob --concatenated --limit --output --help -h' ;;
            'convert')
                words=''
                [[ $current == -* ]] && words='--from --output --help -h' ;;
            'compile')
                words=''
                [[ $current == -* ]] && words='-s --subscriptions --output --namespaces --ns --default-ns --unsupported --skip-bad --warm --recursive --glob --concatenated --limit --help -h' ;;
            'subscriptions')
                words='create add remove list compact'
                [[ $current == -* ]] && words='--help -h' ;;
            'subscriptions create')
                words=''
                [[ $current == -* ]] && words='--kind -s --subscriptions --namespaces --ns --default-ns --dtd --root --catalog --dtd-trust --engine --unsupported --limit --help -h' ;;
            'subscriptions add')
                words=''
                [[ $current == -* ]] && words='-s --subscriptions --id --expression --replace --help -h' ;;
            'subscriptions remove')
                words=''
                [[ $current == -* ]] && words='--help -h' ;;
            'subscriptions list')
                words=''
                [[ $current == -* ]] && words='--output --help -h' ;;
            'subscriptions compact')
                words=''
                [[ $current == -* ]] && words='--help -h' ;;
            'check')
                words=''
                [[ $current == -* ]] && words='-s --subscriptions --namespaces --ns --default-ns --declared-encoding --unsupported --dtd --root --catalog --against --recursive --glob --concatenated --limit --events --help -h' ;;
            'select')
                words=''
                [[ $current == -* ]] && words='--first --value --null -0 --json --namespaces --ns --default-ns --declared-encoding --unsupported --record --on-bad-record --recursive --glob --concatenated --limit --threads --output --help -h' ;;
            'explain')
                words=''
                [[ $current == -* ]] && words='--namespaces --ns --default-ns --declared-encoding --limit --events --transformation --strategy --dtd --root --help -h' ;;
            'serve')
                words=''
                [[ $current == -* ]] && words='--data --store --address --host --port --allow-network --allow-http --allow-origin --body-bytes --body-seconds --log --help -h' ;;
            'publish')
                words=''
                [[ $current == -* ]] && words='--topic --url --token --events --help -h' ;;
            'subscribe')
                words=''
                [[ $current == -* ]] && words='--topic --url --token --id --expression -s --subscriptions --language --payload --webhook --create-topic --help -h' ;;
            'tail')
                words=''
                [[ $current == -* ]] && words='--topic --id --url --token --count --help -h' ;;
            'run')
                words=''
                [[ $current == -* ]] && words='--input --output -s --subscriptions --program --record --on-bad-record --master --engine --namespaces --ns --default-ns --unsupported --skip-bad --declared-encoding --limit --overwrite --only-new --program-memory --stream --checkpoint --trigger --max-files --max-bytes --conf --help -h' ;;
            'schema')
                words=''
                [[ $current == -* ]] && words='--root --catalog --limit --format --output --help -h' ;;
            'hardware')
                words='generate simulate report'
                [[ $current == -* ]] && words='--help -h' ;;
            'hardware generate')
                words=''
                [[ $current == -* ]] && words='-s --subscriptions --output --system --cluster --leaves --outputs --depth --dtd --sample --rest --namespaces --ns --default-ns --skip-bad --limit --help -h' ;;
            'hardware simulate')
                words=''
                [[ $current == -* ]] && words='-s --subscriptions --system --cluster --leaves --outputs --depth --dtd --sample --rest --namespaces --ns --default-ns --skip-bad --recursive --glob --concatenated --limit --netlist --waveforms --folder --output --help -h' ;;
            'hardware report')
                words=''
                [[ $current == -* ]] && words='-s --subscriptions --system --cluster --leaves --outputs --depth --dtd --sample --rest --namespaces --ns --default-ns --skip-bad --limit --estimate --seeds --megahertz --folder --help -h' ;;
            'workload')
                words='queries twigs transformations documents dblp events'
                [[ $current == -* ]] && words='--help -h' ;;
            'workload queries')
                words=''
                [[ $current == -* ]] && words='--dtd --documents --count --seed --distinct --matching --root --catalog --depth --wildcard --descendant --skew --predicates --nested --nested-depth --inconsistent --values --values-skew --values-kind --selectivity --namespaces --output --help -h' ;;
            'workload twigs')
                words=''
                [[ $current == -* ]] && words='--dtd --count --seed --distinct --root --catalog --nodes --splits --children --wildcard --descendant --predicates --values --values-skew --values-kind --selectivity --namespaces --output --help -h' ;;
            'workload transformations')
                words=''
                [[ $current == -* ]] && words='--dtd --count --seed --distinct --root --catalog --binding-depth --depth --predicates --returns --descendant --values --values-skew --values-kind --namespaces --output --help -h' ;;
            'workload documents')
                words=''
                [[ $current == -* ]] && words='--dtd --count --output --seed --root --catalog --depth --size --fill --records --repeats --repeat --optional --values --values-skew --values-kind --help -h' ;;
            'workload dblp')
                words=''
                [[ $current == -* ]] && words='--size --records --seed --output --help -h' ;;
            'workload events')
                words=''
                [[ $current == -* ]] && words='--output --count --interfaces --filters --constraints --attributes --names --skew --values --strings --operators --string-operators --seed --help -h' ;;
            'completion')
                words='bash zsh fish'
                [[ $current == -* ]] && words='--help -h' ;;
        esac
    fi
    COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o bashdefault -o default -F _tamis tamis
