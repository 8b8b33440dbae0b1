#compdef tamis
# zsh completion of tamis: source it, or put it into a folder of fpath as _tamis.
# Made by scripts/make-completions.
_tamis_completion() {
    _arguments -s -S \
        '(--help -h)--help[Show this message and exit]' \
        '(--help -h)-h[Show this message and exit]' \
        ':SHELL:(bash zsh fish)' \
        && return
}
_tamis_workload_events() {
    _arguments -s -S \
        '(--output)--output=[Gets subscriptions.tsv]:FOLDER:_files' \
        '(--count)--count=[How many events]:value: ' \
        '(--interfaces)--interfaces=[How many interfaces]:N: ' \
        '(--filters)--filters=[Of each interface]:N: ' \
        '(--constraints)--constraints=[Of each filter]:N: ' \
        '(--attributes)--attributes=[Of each event]:N: ' \
        '(--names)--names=[How many attribute names]:N: ' \
        '(--skew)--skew=[Zipfs exponent of the names]:S: ' \
        '(--values)--values=[How many values]:N: ' \
        '(--strings)--strings=[Of the names]:SHARE: ' \
        '(--operators)--operators=[Of constraints with numbers]:SHARES: ' \
        '(--string-operators)--string-operators=[Of those with strings]:SHARES: ' \
        '(--seed)--seed=[Another one makes another workload]:value: ' \
        '(--help -h)--help[Show this message and exit]' \
        '(--help -h)-h[Show this message and exit]' \
        && return
}
_tamis_workload_dblp() {
    _arguments -s -S \
        '(--size)--size=[Of the document]:BYTES: ' \
        '(--records)--records=[Publications]:N: ' \
        '(--seed)--seed=[Another one makes another workload]:value: ' \
        '(--output)--output=[Write to this file instead of standard output]:FILE:_files' \
        '(--help -h)--help[Show this message and exit]' \
        '(--help -h)-h[Show this message and exit]' \
        && return
}
_tamis_workload_documents() {
    _arguments -s -S \
        '(--dtd)--dtd=[What they are valid by]:FILE:_files' \
        '(--count)--count=[How many]:value: ' \
        '(--output)--output=[A folder for the documents (000000.xml]:PATH:_files' \
        '(--seed)--seed=[Another one makes another workload]:value: ' \
        '*--root=[An element that documents begin with]:NAME: ' \
        '*--catalog=[Where to look for files that the DTD refers to]:FOLDER:_files' \
        '(--depth)--depth=[Elements inside each other]:N: ' \
        '(--size)--size=[Of each document]:BYTES: ' \
        '(--fill)--fill[Repeat what is outermost and may repeat until the size is reached]' \
        '(--records)--records=[Repeat what is outermost and may repeat so many times]:N: ' \
        '(--repeats)--repeats=[How often what may repeat does]:N: ' \
        '*--repeat=[The same for an element of this name]:NAME=N: ' \
        '(--optional)--optional=[The probability of what may be left out]:P: ' \
        '(--values)--values=[How many different values there are]:N: ' \
        '(--values-skew)--values-skew=[Zipfs exponent of the values]:S: ' \
        '(--values-kind)--values-kind=[Numbers from 1]:value:(numbers words)' \
        '(--help -h)--help[Show this message and exit]' \
        '(--help -h)-h[Show this message and exit]' \
        && return
}
_tamis_workload_transformations() {
    _arguments -s -S \
        '(--dtd)--dtd=[Whose elements are taken]:FILE:_files' \
        '(--count)--count=[How many]:value: ' \
        '(--seed)--seed=[Another one makes another workload]:value: ' \
        '(--distinct)--distinct[No two alike]' \
        '*--root=[An element that documents begin with]:NAME: ' \
        '*--catalog=[Where to look for files that the DTD refers to]:FOLDER:_files' \
        '(--binding-depth)--binding-depth=[D1]:N: ' \
        '(--depth)--depth=[D2]:N: ' \
        '(--predicates)--predicates=[PP]:N: ' \
        '(--returns)--returns=[RP]:N: ' \
        '(--descendant)--descendant=[P(//)]:P: ' \
        '(--values)--values=[How many different values there are]:N: ' \
        '(--values-skew)--values-skew=[Zipfs exponent of the values]:S: ' \
        '(--values-kind)--values-kind=[Numbers from 1]:value:(numbers words)' \
        '(--namespaces)--namespaces=[Write the prefixes that they use]:FILE:_files' \
        '(--output)--output=[Write to this file instead of standard output]:FILE:_files' \
        '(--help -h)--help[Show this message and exit]' \
        '(--help -h)-h[Show this message and exit]' \
        && return
}
_tamis_workload_twigs() {
    _arguments -s -S \
        '(--dtd)--dtd=[What the twigs grow in]:FILE:_files' \
        '(--count)--count=[How many]:value: ' \
        '(--seed)--seed=[Another one makes another workload]:value: ' \
        '(--distinct)--distinct[No two alike]' \
        '*--root=[An element that documents begin with]:NAME: ' \
        '*--catalog=[Where to look for files that the DTD refers to]:FOLDER:_files' \
        '(--nodes)--nodes=[Steps of a twig]:N: ' \
        '(--splits)--splits=[Nodes with more than one child]:N: ' \
        '(--children)--children=[Of these nodes]:N: ' \
        '(--wildcard)--wildcard=[P(*)]:P: ' \
        '(--descendant)--descendant=[P(//)]:P: ' \
        '(--predicates)--predicates=[Comparisons with values]:N: ' \
        '(--values)--values=[How many different values there are]:N: ' \
        '(--values-skew)--values-skew=[Zipfs exponent of the values]:S: ' \
        '(--values-kind)--values-kind=[Numbers from 1]:value:(numbers words)' \
        '(--selectivity)--selectivity=[The share of values that a comparison is true of]:SHARE: ' \
        '(--namespaces)--namespaces=[Write the prefixes that the twigs use]:FILE:_files' \
        '(--output)--output=[Write to this file instead of standard output]:FILE:_files' \
        '(--help -h)--help[Show this message and exit]' \
        '(--help -h)-h[Show this message and exit]' \
        && return
}
_tamis_workload_queries() {
    _arguments -s -S \
        '(--dtd)--dtd=[Walk over its elements]:FILE:_files' \
        '*--documents=[Draw from these documents instead]:DOCUMENT:_files' \
        '(--count)--count=[How many]:value: ' \
        '(--seed)--seed=[Another one makes another workload]:value: ' \
        '(--distinct)--distinct[No two alike]' \
        '(--matching)--matching=[Of --documents]:SHARE: ' \
        '*--root=[An element that documents begin with]:NAME: ' \
        '*--catalog=[Where to look for files that the DTD refers to]:FOLDER:_files' \
        '(--depth)--depth=[Steps]:N: ' \
        '(--wildcard)--wildcard=[P(*)]:P: ' \
        '(--descendant)--descendant=[P(//)]:P: ' \
        '(--skew)--skew=[Zipfs exponent of the choice among children]:S: ' \
        '(--predicates)--predicates=[Comparisons with values]:N: ' \
        '(--nested)--nested=[Paths inside brackets]:N: ' \
        '(--nested-depth)--nested-depth=[Steps of these]:N: ' \
        '(--inconsistent)--inconsistent[Do not follow the DTD]' \
        '(--values)--values=[How many different values there are]:N: ' \
        '(--values-skew)--values-skew=[Zipfs exponent of the values]:S: ' \
        '(--values-kind)--values-kind=[Numbers from 1]:value:(numbers words)' \
        '(--selectivity)--selectivity=[The share of values that a comparison is true of]:SHARE: ' \
        '(--namespaces)--namespaces=[Write the prefixes that the queries use]:FILE:_files' \
        '(--output)--output=[Write to this file instead of standard output]:FILE:_files' \
        '(--help -h)--help[Show this message and exit]' \
        '(--help -h)-h[Show this message and exit]' \
        && return
}
_tamis_workload() {
    _arguments -C \
        '(--help -h)--help[Show this message and exit]' \
        '(--help -h)-h[Show this message and exit]' \
        '1:command:((queries\:"Generate path queries" twigs\:"Generate twigs" transformations\:"Generate transforming subscriptions" documents\:"Generate valid documents" dblp\:"Generate a bibliography of any size" events\:"Generate events and subscriptions of one filter"))' \
        '*::argument:->arguments'
    [ "$state" = arguments ] && case $words[1] in
        queries) _tamis_workload_queries ;;
        twigs) _tamis_workload_twigs ;;
        transformations) _tamis_workload_transformations ;;
        documents) _tamis_workload_documents ;;
        dblp) _tamis_workload_dblp ;;
        events) _tamis_workload_events ;;
    esac
}
_tamis_schema() {
    _arguments -s -S \
        '*--root=[An element that documents begin with]:NAME: ' \
        '*--catalog=[Where to look for files that the DTD refers to]:FOLDER:_files' \
        '*--limit=[Change a limit on what a subscription or a document may cost]:NAME=VALUE: ' \
        '(--format)--format=[text]:value:(text json paths dot svg)' \
        '(--output)--output=[Write to this file instead of standard output]:FILE:_files' \
        '(--help -h)--help[Show this message and exit]' \
        '(--help -h)-h[Show this message and exit]' \
        ':DTD:_files' \
        && return
}
_tamis_run() {
    _arguments -s -S \
        '*--input=[A file]:PATH:_files' \
        '(--output)--output=[The folder for the folders of results]:DIR:_files' \
        '(-s --subscriptions)-s[One subscription a line]:FILE:_files' \
        '(-s --subscriptions)--subscriptions=[One subscription a line]:FILE:_files' \
        '(--program)--program=[Instead of subscriptions]:FILE:_files' \
        '(--record)--record=[Match each outermost element of this tag as a document of its own]:TAG: ' \
        '(--master)--master=[Where Spark runs]:URL: ' \
        '(--engine)--engine=[Use this engine]:NAME: ' \
        '(--namespaces)--namespaces=[The prefixes that expressions use]:FILE:_files' \
        '*--ns=[Declare a prefix that expressions use]:PREFIX=URI: ' \
        '(--default-ns)--default-ns=[The namespace of elements that expressions name without a prefix]:URI: ' \
        '(--unsupported)--unsupported=[XPath outside the streamed fragment]:value:(refuse slow)' \
        '(--skip-bad)--skip-bad[Go on without the subscriptions that cannot be used]' \
        '(--declared-encoding)--declared-encoding=[The encoding that documents declare]:value:(check ignore)' \
        '*--limit=[Change a limit on what a subscription or a document may cost]:NAME=VALUE: ' \
        '(--overwrite)--overwrite[Replace the results in DIR]' \
        '(--only-new)--only-new[Match the files that are not in DIR/manifest as they are now (their size]' \
        '(--program-memory)--program-memory=[What the compiled subscriptions may take of each machines memory]:MB: ' \
        '(--stream)--stream[Go on]' \
        '(--checkpoint)--checkpoint=[With --stream]:DIR:_files' \
        '(--trigger)--trigger=[With --stream]:TIME: ' \
        '(--max-files)--max-files=[With --stream]:N: ' \
        '*--conf=[A property of Spark]:KEY=VALUE: ' \
        '(--help -h)--help[Show this message and exit]' \
        '(--help -h)-h[Show this message and exit]' \
        '*:PATH:_files' \
        && return
}
_tamis_explain() {
    _arguments -s -S \
        '(--namespaces)--namespaces=[The prefixes that expressions use]:FILE:_files' \
        '*--ns=[Declare a prefix that expressions use]:PREFIX=URI: ' \
        '(--default-ns)--default-ns=[The namespace of elements that expressions name without a prefix]:URI: ' \
        '(--declared-encoding)--declared-encoding=[The encoding that documents declare]:value:(check ignore)' \
        '*--limit=[Change a limit on what a subscription or a document may cost]:NAME=VALUE: ' \
        '(--events)--events[It is of events]' \
        '(--transformation)--transformation[It is one of tamis transform]' \
        '(--strategy)--strategy=[With --transformation]:value: ' \
        '(--dtd)--dtd=[With --transformation]:FILE:_files' \
        '(--root)--root=[With --dtd]:NAME: ' \
        '(--help -h)--help[Show this message and exit]' \
        '(--help -h)-h[Show this message and exit]' \
        ':EXPRESSION: ' \
        ':DOCUMENT:_files' \
        && return
}
_tamis_select() {
    _arguments -s -S \
        '(--first)--first[Only the first node of each document]' \
        '(--value)--value[Print the value of each node instead of its markup]' \
        '(--null -0)--null[End each result with a NUL byte]' \
        '(--null -0)-0[End each result with a NUL byte]' \
        '(--json)--json[One JSON object a node]' \
        '(--namespaces)--namespaces=[The prefixes that expressions use]:FILE:_files' \
        '*--ns=[Declare a prefix that expressions use]:PREFIX=URI: ' \
        '(--default-ns)--default-ns=[The namespace of elements that expressions name without a prefix]:URI: ' \
        '(--declared-encoding)--declared-encoding=[The encoding that documents declare]:value:(check ignore)' \
        '(--unsupported)--unsupported=[XPath outside the streamed fragment]:value:(refuse slow)' \
        '(--record)--record=[Match each outermost element of this tag as a document of its own]:TAG: ' \
        '(--recursive)--recursive[Read the folders in a folder too]' \
        '*--glob=[Read the files of folders]:PATTERN: ' \
        '(--concatenated)--concatenated=-[Each file]::[=lines|nul]:(xml lines nul)' \
        '*--limit=[Change a limit on what a subscription or a document may cost]:NAME=VALUE: ' \
        '(--threads)--threads=[How many threads match at once]:N: ' \
        '(--output)--output=[Write the results to this file instead of standard output]:FILE:_files' \
        '(--help -h)--help[Show this message and exit]' \
        '(--help -h)-h[Show this message and exit]' \
        ':EXPRESSION: ' \
        '*:DOCUMENT:_files' \
        && return
}
_tamis_check() {
    _arguments -s -S \
        '(-s --subscriptions)-s[One subscription a line]:FILE:_files' \
        '(-s --subscriptions)--subscriptions=[One subscription a line]:FILE:_files' \
        '(--namespaces)--namespaces=[The prefixes that expressions use]:FILE:_files' \
        '*--ns=[Declare a prefix that expressions use]:PREFIX=URI: ' \
        '(--default-ns)--default-ns=[The namespace of elements that expressions name without a prefix]:URI: ' \
        '(--declared-encoding)--declared-encoding=[The encoding that documents declare]:value:(check ignore)' \
        '(--unsupported)--unsupported=[XPath outside the streamed fragment]:value:(refuse slow)' \
        '(--dtd)--dtd=[The DTD of the documents (*.dtd)]:FILE:_files' \
        '(--root)--root=[The element that documents begin with]:NAME: ' \
        '*--catalog=[Where to look for files that the DTD refers to]:FOLDER:_files' \
        '(--against)--against=[Match the documents with this too]:value:(lxml)' \
        '(--recursive)--recursive[Read the folders in a folder too]' \
        '*--glob=[Read the files of folders]:PATTERN: ' \
        '(--concatenated)--concatenated=-[Each file]::[=lines|nul]:(xml lines nul)' \
        '*--limit=[Change a limit on what a subscription or a document may cost]:NAME=VALUE: ' \
        '(--events)--events[The subscriptions are those of tamis match-events]' \
        '(--help -h)--help[Show this message and exit]' \
        '(--help -h)-h[Show this message and exit]' \
        '*:DOCUMENT:_files' \
        && return
}
_tamis_compile() {
    _arguments -s -S \
        '(-s --subscriptions)-s[One subscription a line]:FILE:_files' \
        '(-s --subscriptions)--subscriptions=[One subscription a line]:FILE:_files' \
        '(--output)--output=[Where to save the program]:FILE:_files' \
        '(--namespaces)--namespaces=[The prefixes that expressions use]:FILE:_files' \
        '*--ns=[Declare a prefix that expressions use]:PREFIX=URI: ' \
        '(--default-ns)--default-ns=[The namespace of elements that expressions name without a prefix]:URI: ' \
        '(--unsupported)--unsupported=[XPath outside the streamed fragment]:value:(refuse slow)' \
        '(--skip-bad)--skip-bad[Go on without the subscriptions that cannot be used]' \
        '*--warm=[Match this first]:DOCUMENT:_files' \
        '(--recursive)--recursive[Read the folders in a folder too]' \
        '*--glob=[Read the files of folders]:PATTERN: ' \
        '(--concatenated)--concatenated=-[Each file]::[=lines|nul]:(xml lines nul)' \
        '*--limit=[Change a limit on what a subscription or a document may cost]:NAME=VALUE: ' \
        '(--help -h)--help[Show this message and exit]' \
        '(--help -h)-h[Show this message and exit]' \
        && return
}
_tamis_transform() {
    _arguments -s -S \
        '*-s[A folder of ID.xq]:DIR|FILE:_files' \
        '*--subscriptions=[A folder of ID.xq]:DIR|FILE:_files' \
        '(--namespaces)--namespaces=[The prefixes that expressions use]:FILE:_files' \
        '*--ns=[Declare a prefix that expressions use]:PREFIX=URI: ' \
        '(--default-ns)--default-ns=[The namespace of elements that expressions name without a prefix]:URI: ' \
        '(--declared-encoding)--declared-encoding=[The encoding that documents declare]:value:(check ignore)' \
        '(--skip-bad)--skip-bad[Go on without the subscriptions that cannot be used]' \
        '(--recursive)--recursive[Read the folders in a folder too]' \
        '*--glob=[Read the files of folders]:PATTERN: ' \
        '(--concatenated)--concatenated=-[Each file]::[=lines|nul]:(xml lines nul)' \
        '*--limit=[Change a limit on what a subscription or a document may cost]:NAME=VALUE: ' \
        '(--output)--output=[Write the results to this file instead of standard output]:FILE:_files' \
        '(--help -h)--help[Show this message and exit]' \
        '(--help -h)-h[Show this message and exit]' \
        '*:DOCUMENT:_files' \
        && return
}
_tamis_match_events() {
    _arguments -s -S \
        '(-s --subscriptions)-s[One subscription a line]:FILE:_files' \
        '(-s --subscriptions)--subscriptions=[One subscription a line]:FILE:_files' \
        '(--engine)--engine=[Use this engine]:NAME: ' \
        '(--interfaces)--interfaces=[What subscriptions belong to]:FILE:_files' \
        '(--by)--by=[What matches are]:value:(subscription filter interface)' \
        '(--skip-bad)--skip-bad[Go on without the subscriptions that cannot be used]' \
        '(--matching-only)--matching-only[Leave out events that matched nothing]' \
        '(--threads)--threads=[How many threads match at once]:N: ' \
        '*--limit=[Change a limit on what a subscription or a document may cost]:NAME=VALUE: ' \
        '(--output)--output=[Write the results to this file instead of standard output]:FILE:_files' \
        '(--help -h)--help[Show this message and exit]' \
        '(--help -h)-h[Show this message and exit]' \
        '*:EVENTS:_files' \
        && return
}
_tamis_match() {
    _arguments -s -S \
        '(-s --subscriptions)-s[One subscription a line]:FILE:_files' \
        '(-s --subscriptions)--subscriptions=[One subscription a line]:FILE:_files' \
        '(--program)--program=[Instead of subscriptions]:FILE:_files' \
        '(--dtd)--dtd=[The DTD of the documents (*.dtd)]:FILE:_files' \
        '(--root)--root=[The element that documents begin with]:NAME: ' \
        '*--catalog=[Where to look for files that the DTD refers to]:FOLDER:_files' \
        '(--dtd-trust)--dtd-trust[Documents are known to be valid]' \
        '(--engine)--engine=[Use this engine]:NAME: ' \
        '(--namespaces)--namespaces=[The prefixes that expressions use]:FILE:_files' \
        '*--ns=[Declare a prefix that expressions use]:PREFIX=URI: ' \
        '(--default-ns)--default-ns=[The namespace of elements that expressions name without a prefix]:URI: ' \
        '(--declared-encoding)--declared-encoding=[The encoding that documents declare]:value:(check ignore)' \
        '(--unsupported)--unsupported=[XPath outside the streamed fragment]:value:(refuse slow)' \
        '(--skip-bad)--skip-bad[Go on without the subscriptions that cannot be used]' \
        '(--record)--record=[Match each outermost element of this tag as a document of its own]:TAG: ' \
        '(--recursive)--recursive[Read the folders in a folder too]' \
        '*--glob=[Read the files of folders]:PATTERN: ' \
        '(--concatenated)--concatenated=-[Each file]::[=lines|nul]:(xml lines nul)' \
        '*--limit=[Change a limit on what a subscription or a document may cost]:NAME=VALUE: ' \
        '(--threads)--threads=[How many threads match at once]:N: ' \
        '(--matching-only)--matching-only[Leave out documents and records that matched nothing]' \
        '(--nodes)--nodes[Say which elements]' \
        '(--values)--values[The same as --nodes]' \
        '(--output)--output=[Write the results to this file instead of standard output]:FILE:_files' \
        '(--help -h)--help[Show this message and exit]' \
        '(--help -h)-h[Show this message and exit]' \
        '*:DOCUMENT:_files' \
        && return
}
_tamis() {
    _arguments -C \
        '(-V --version)-V[Print it and end]' \
        '(-V --version)--version[Print it and end]' \
        '(--help -h)--help[Show this message and exit]' \
        '(--help -h)-h[Show this message and exit]' \
        '1:command:((match\:"Match documents against subscriptions" match-events\:"Match events against subscriptions" transform\:"Make of documents the messages that subscriptions want" compile\:"Compile subscriptions and save them" check\:"Check that subscriptions can be used" select\:"Print the nodes that an expression selects" explain\:"Explain an expression" run\:"Match files against subscriptions on Spark" schema\:"Show what a DTD permits" workload\:"Generate subscriptions" completion\:"Print the completion of a shell"))' \
        '*::argument:->arguments'
    [ "$state" = arguments ] && case $words[1] in
        match) _tamis_match ;;
        match-events) _tamis_match_events ;;
        transform) _tamis_transform ;;
        compile) _tamis_compile ;;
        check) _tamis_check ;;
        select) _tamis_select ;;
        explain) _tamis_explain ;;
        run) _tamis_run ;;
        schema) _tamis_schema ;;
        workload) _tamis_workload ;;
        completion) _tamis_completion ;;
    esac
}
if [ "$funcstack[1]" = _tamis ]; then _tamis "$@"; else compdef _tamis tamis; fi
