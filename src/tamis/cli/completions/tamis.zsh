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
        '(--output)--output=[The folder for subscriptions.tsv]:FOLDER:_files' \
        '(--count)--count=[The number of events]:value: ' \
        '(--interfaces)--interfaces=[The number of interfaces]:N: ' \
        '(--filters)--filters=[The number of filters per interface]:N: ' \
        '(--constraints)--constraints=[The number of constraints per filter]:N: ' \
        '(--attributes)--attributes=[The number of attributes per event]:N: ' \
        '(--names)--names=[The number of attribute names]:N: ' \
        '(--skew)--skew=[Zipfs exponent for the choice of names]:S: ' \
        '(--values)--values=[The number of different values]:N: ' \
        '(--strings)--strings=[The share of attribute names whose values are strings]:SHARE: ' \
        '(--operators)--operators=[The share of each operator in constraints on numbers]:SHARES: ' \
        '(--string-operators)--string-operators=[The share of each operator in constraints on strings]:SHARES: ' \
        '(--seed)--seed=[The seed of the random choices]:value: ' \
        '(--help -h)--help[Show this message and exit]' \
        '(--help -h)-h[Show this message and exit]' \
        && return
}
_tamis_workload_dblp() {
    _arguments -s -S \
        '(--size)--size=[The size of the document]:BYTES: ' \
        '(--records)--records=[The number of publications]:N: ' \
        '(--seed)--seed=[The seed of the random choices]:value: ' \
        '(--output)--output=[Write to this file instead of standard output]:FILE:_files' \
        '(--help -h)--help[Show this message and exit]' \
        '(--help -h)-h[Show this message and exit]' \
        && return
}
_tamis_workload_documents() {
    _arguments -s -S \
        '(--dtd)--dtd=[The DTD of the documents]:FILE:_files' \
        '(--count)--count=[The number of results]:value: ' \
        '(--output)--output=[A folder for the documents (000000.xml]:PATH:_files' \
        '(--seed)--seed=[The seed of the random choices]:value: ' \
        '*--root=[A root element of documents]:NAME: ' \
        '*--catalog=[A folder with files that the DTD refers to]:FOLDER:_files' \
        '(--depth)--depth=[The largest depth of elements]:N: ' \
        '(--size)--size=[The largest size of a document]:BYTES: ' \
        '(--fill)--fill[Repeat the outermost repeatable element until the document reaches --size]' \
        '(--records)--records=[Repeat the outermost repeatable element N times]:N: ' \
        '(--repeats)--repeats=[The number of repetitions of a repeatable element]:N: ' \
        '*--repeat=[The same for one element name]:NAME=N: ' \
        '(--optional)--optional=[The probability that an optional part is present]:P: ' \
        '(--values)--values=[The number of different values]:N: ' \
        '(--values-skew)--values-skew=[Zipfs exponent for the choice of values]:S: ' \
        '(--values-kind)--values-kind=[The kind of values]:value:(numbers words)' \
        '(--help -h)--help[Show this message and exit]' \
        '(--help -h)-h[Show this message and exit]' \
        && return
}
_tamis_workload_transformations() {
    _arguments -s -S \
        '(--dtd)--dtd=[The DTD of the transformations]:FILE:_files' \
        '(--count)--count=[The number of results]:value: ' \
        '(--seed)--seed=[The seed of the random choices]:value: ' \
        '(--distinct)--distinct[Generate no result twice]' \
        '*--root=[A root element of documents]:NAME: ' \
        '*--catalog=[A folder with files that the DTD refers to]:FOLDER:_files' \
        '(--binding-depth)--binding-depth=[D1]:N: ' \
        '(--depth)--depth=[D2]:N: ' \
        '(--predicates)--predicates=[PP]:N: ' \
        '(--returns)--returns=[RP]:N: ' \
        '(--descendant)--descendant=[The probability that a step uses //]:P: ' \
        '(--values)--values=[The number of different values]:N: ' \
        '(--values-skew)--values-skew=[Zipfs exponent for the choice of values]:S: ' \
        '(--values-kind)--values-kind=[The kind of values]:value:(numbers words)' \
        '(--namespaces)--namespaces=[Write the prefixes of the transformations to this file]:FILE:_files' \
        '(--output)--output=[Write to this file instead of standard output]:FILE:_files' \
        '(--help -h)--help[Show this message and exit]' \
        '(--help -h)-h[Show this message and exit]' \
        && return
}
_tamis_workload_twigs() {
    _arguments -s -S \
        '(--dtd)--dtd=[The DTD of the twigs]:FILE:_files' \
        '(--count)--count=[The number of results]:value: ' \
        '(--seed)--seed=[The seed of the random choices]:value: ' \
        '(--distinct)--distinct[Generate no result twice]' \
        '*--root=[A root element of documents]:NAME: ' \
        '*--catalog=[A folder with files that the DTD refers to]:FOLDER:_files' \
        '(--nodes)--nodes=[The number of steps per twig]:N: ' \
        '(--splits)--splits=[The number of nodes with more than one child]:N: ' \
        '(--children)--children=[The largest number of children of such a node]:N: ' \
        '(--wildcard)--wildcard=[The probability that a step is *]:P: ' \
        '(--descendant)--descendant=[The probability that a step uses //]:P: ' \
        '(--predicates)--predicates=[The number of comparisons per query]:N: ' \
        '(--values)--values=[The number of different values]:N: ' \
        '(--values-skew)--values-skew=[Zipfs exponent for the choice of values]:S: ' \
        '(--values-kind)--values-kind=[The kind of values]:value:(numbers words)' \
        '(--selectivity)--selectivity=[The share of values for which a comparison is true]:SHARE: ' \
        '(--namespaces)--namespaces=[Write the prefixes of the twigs to this file]:FILE:_files' \
        '(--output)--output=[Write to this file instead of standard output]:FILE:_files' \
        '(--help -h)--help[Show this message and exit]' \
        '(--help -h)-h[Show this message and exit]' \
        && return
}
_tamis_workload_queries() {
    _arguments -s -S \
        '(--dtd)--dtd=[The DTD of the queries]:FILE:_files' \
        '*--documents=[Draw queries from the paths and values of these documents instead of a DTD]:DOCUMENT:_files' \
        '(--count)--count=[The number of results]:value: ' \
        '(--seed)--seed=[The seed of the random choices]:value: ' \
        '(--distinct)--distinct[Generate no result twice]' \
        '(--matching)--matching=[With --documents]:SHARE: ' \
        '*--root=[A root element of documents]:NAME: ' \
        '*--catalog=[A folder with files that the DTD refers to]:FOLDER:_files' \
        '(--depth)--depth=[The largest number of steps]:N: ' \
        '(--wildcard)--wildcard=[The probability that a step is *]:P: ' \
        '(--descendant)--descendant=[The probability that a step uses //]:P: ' \
        '(--skew)--skew=[Zipfs exponent for the choice among child elements]:S: ' \
        '(--predicates)--predicates=[The number of comparisons per query]:N: ' \
        '(--nested)--nested=[The number of paths in brackets per query]:N: ' \
        '(--nested-depth)--nested-depth=[The largest number of steps of such a path]:N: ' \
        '(--inconsistent)--inconsistent[Use the names of the DTD]' \
        '(--values)--values=[The number of different values]:N: ' \
        '(--values-skew)--values-skew=[Zipfs exponent for the choice of values]:S: ' \
        '(--values-kind)--values-kind=[The kind of values]:value:(numbers words)' \
        '(--selectivity)--selectivity=[The share of values for which a comparison is true]:SHARE: ' \
        '(--namespaces)--namespaces=[Write the prefixes of the queries to this file]:FILE:_files' \
        '(--output)--output=[Write to this file instead of standard output]:FILE:_files' \
        '(--help -h)--help[Show this message and exit]' \
        '(--help -h)-h[Show this message and exit]' \
        && return
}
_tamis_workload() {
    _arguments -C \
        '(--help -h)--help[Show this message and exit]' \
        '(--help -h)-h[Show this message and exit]' \
        '1:command:((queries\:"Generate path queries" twigs\:"Generate twigs" transformations\:"Generate transformations" documents\:"Generate valid documents with a limited depth and size" dblp\:"Generate a bibliography of any size" events\:"Generate events"))' \
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
_tamis_hardware_report() {
    _arguments -s -S \
        '(-s --subscriptions)-s[A UTF-8 file with one subscription per line]:FILE:_files' \
        '(-s --subscriptions)--subscriptions=[A UTF-8 file with one subscription per line]:FILE:_files' \
        '(--system)--system=[shared]:value:(shared wide NONT WONT WOWT WOWrT)' \
        '(--cluster)--cluster=[The number of queries of a cluster]:value: ' \
        '(--leaves)--leaves=[The leaves of the fan-out tree]:value: ' \
        '(--outputs)--outputs=[Read match bits out by one output of the chip]:value:(chip cluster)' \
        '(--depth)--depth=[The number of elements that may be open at once]:value: ' \
        '(--dtd)--dtd=[The alphabet has the element names of this DTD]:FILE:_files' \
        '*--sample=[The alphabet has the element names of these documents]:DOCUMENT:_files' \
        '(--rest)--rest=[What happens to subscriptions that the circuit cannot have]:value:(software refuse)' \
        '(--namespaces)--namespaces=[A file that declares prefixes for expressions]:FILE:_files' \
        '*--ns=[Declare one prefix for expressions]:PREFIX=URI: ' \
        '(--default-ns)--default-ns=[The namespace of element names without a prefix in expressions]:URI: ' \
        '(--skip-bad)--skip-bad[Skip bad subscriptions]' \
        '*--limit=[Change a limit on the size or cost of subscriptions and documents]:NAME=VALUE: ' \
        '(--estimate)--estimate[Synthesise only]' \
        '(--seeds)--seeds=[The number of runs of place and route]:value: ' \
        '(--megahertz)--megahertz=[The clock that place and route aims at]:value: ' \
        '(--folder)--folder=[Keep the files of the circuit here]:FOLDER:_files' \
        '(--help -h)--help[Show this message and exit]' \
        '(--help -h)-h[Show this message and exit]' \
        && return
}
_tamis_hardware_simulate() {
    _arguments -s -S \
        '(-s --subscriptions)-s[A UTF-8 file with one subscription per line]:FILE:_files' \
        '(-s --subscriptions)--subscriptions=[A UTF-8 file with one subscription per line]:FILE:_files' \
        '(--system)--system=[shared]:value:(shared wide NONT WONT WOWT WOWrT)' \
        '(--cluster)--cluster=[The number of queries of a cluster]:value: ' \
        '(--leaves)--leaves=[The leaves of the fan-out tree]:value: ' \
        '(--outputs)--outputs=[Read match bits out by one output of the chip]:value:(chip cluster)' \
        '(--depth)--depth=[The number of elements that may be open at once]:value: ' \
        '(--dtd)--dtd=[The alphabet has the element names of this DTD]:FILE:_files' \
        '*--sample=[The alphabet has the element names of these documents]:DOCUMENT:_files' \
        '(--rest)--rest=[What happens to subscriptions that the circuit cannot have]:value:(software refuse)' \
        '(--namespaces)--namespaces=[A file that declares prefixes for expressions]:FILE:_files' \
        '*--ns=[Declare one prefix for expressions]:PREFIX=URI: ' \
        '(--default-ns)--default-ns=[The namespace of element names without a prefix in expressions]:URI: ' \
        '(--skip-bad)--skip-bad[Skip bad subscriptions]' \
        '(--recursive)--recursive[Also read subfolders]' \
        '*--glob=[Read files in folders and members of archives whose name matches]:PATTERN: ' \
        '(--concatenated)--concatenated=-[Each input contains several documents]::[=lines|nul]:(xml lines nul)' \
        '*--limit=[Change a limit on the size or cost of subscriptions and documents]:NAME=VALUE: ' \
        '(--netlist)--netlist[Simulate the netlist after synthesis]' \
        '(--waveforms)--waveforms=[Write the waveforms of all signals to this file]:FILE:_files' \
        '(--folder)--folder=[Keep the files of the circuit here]:FOLDER:_files' \
        '(--output)--output=[Write the results to this file instead of standard output]:FILE:_files' \
        '(--help -h)--help[Show this message and exit]' \
        '(--help -h)-h[Show this message and exit]' \
        '*:DOCUMENT:_files' \
        && return
}
_tamis_hardware_generate() {
    _arguments -s -S \
        '(-s --subscriptions)-s[A UTF-8 file with one subscription per line]:FILE:_files' \
        '(-s --subscriptions)--subscriptions=[A UTF-8 file with one subscription per line]:FILE:_files' \
        '(--output)--output=[The folder for the circuit]:FOLDER:_files' \
        '(--system)--system=[shared]:value:(shared wide NONT WONT WOWT WOWrT)' \
        '(--cluster)--cluster=[The number of queries of a cluster]:value: ' \
        '(--leaves)--leaves=[The leaves of the fan-out tree]:value: ' \
        '(--outputs)--outputs=[Read match bits out by one output of the chip]:value:(chip cluster)' \
        '(--depth)--depth=[The number of elements that may be open at once]:value: ' \
        '(--dtd)--dtd=[The alphabet has the element names of this DTD]:FILE:_files' \
        '*--sample=[The alphabet has the element names of these documents]:DOCUMENT:_files' \
        '(--rest)--rest=[What happens to subscriptions that the circuit cannot have]:value:(software refuse)' \
        '(--namespaces)--namespaces=[A file that declares prefixes for expressions]:FILE:_files' \
        '*--ns=[Declare one prefix for expressions]:PREFIX=URI: ' \
        '(--default-ns)--default-ns=[The namespace of element names without a prefix in expressions]:URI: ' \
        '(--skip-bad)--skip-bad[Skip bad subscriptions]' \
        '*--limit=[Change a limit on the size or cost of subscriptions and documents]:NAME=VALUE: ' \
        '(--help -h)--help[Show this message and exit]' \
        '(--help -h)-h[Show this message and exit]' \
        && return
}
_tamis_hardware() {
    _arguments -C \
        '(--help -h)--help[Show this message and exit]' \
        '(--help -h)-h[Show this message and exit]' \
        '1:command:((generate\:"Generate a circuit from subscriptions" simulate\:"Match documents with a simulated circuit" report\:"Report the area and the clock of a circuit"))' \
        '*::argument:->arguments'
    [ "$state" = arguments ] && case $words[1] in
        generate) _tamis_hardware_generate ;;
        simulate) _tamis_hardware_simulate ;;
        report) _tamis_hardware_report ;;
    esac
}
_tamis_schema() {
    _arguments -s -S \
        '*--root=[A root element of documents]:NAME: ' \
        '*--catalog=[A folder with files that the DTD refers to]:FOLDER:_files' \
        '*--limit=[Change a limit on the size or cost of subscriptions and documents]:NAME=VALUE: ' \
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
        '(--output)--output=[The folder for the results]:DIR:_files' \
        '(-s --subscriptions)-s[A UTF-8 file with one subscription per line]:FILE:_files' \
        '(-s --subscriptions)--subscriptions=[A UTF-8 file with one subscription per line]:FILE:_files' \
        '(--program)--program=[A program that tamis compile saved]:FILE:_files' \
        '(--record)--record=[Match each outermost element with this tag as a separate document]:TAG: ' \
        '(--on-bad-record)--on-bad-record=[Where a document with records is not well-formed]:value:(stop resume)' \
        '(--master)--master=[The URL of the Spark cluster]:URL: ' \
        '(--engine)--engine=[The engine]:NAME:(auto automaton reference nfa stacks stacks-cuda pma twigstacks twigstacks-cuda)' \
        '(--namespaces)--namespaces=[A file that declares prefixes for expressions]:FILE:_files' \
        '*--ns=[Declare one prefix for expressions]:PREFIX=URI: ' \
        '(--default-ns)--default-ns=[The namespace of element names without a prefix in expressions]:URI: ' \
        '(--unsupported)--unsupported=[What to do with XPath that Tamis does not support]:value:(refuse slow)' \
        '(--skip-bad)--skip-bad[Skip bad subscriptions]' \
        '(--declared-encoding)--declared-encoding=[What to do with the encoding that a document declares]:value:(check ignore)' \
        '*--limit=[Change a limit on the size or cost of subscriptions and documents]:NAME=VALUE: ' \
        '(--overwrite)--overwrite[Replace the results in DIR]' \
        '(--only-new)--only-new[Skip every file whose size and modification time are already in DIR/manifest]' \
        '(--program-memory)--program-memory=[The memory per machine for compiled subscriptions]:MB: ' \
        '(--stream)--stream[Match new files in the folders until the command is interrupted]' \
        '(--checkpoint)--checkpoint=[With --stream]:DIR:_files' \
        '(--trigger)--trigger=[With --stream]:TIME: ' \
        '(--max-files)--max-files=[With --stream]:N: ' \
        '(--max-bytes)--max-bytes=[With --stream]:N: ' \
        '*--conf=[Set a property of Spark]:KEY=VALUE: ' \
        '(--help -h)--help[Show this message and exit]' \
        '(--help -h)-h[Show this message and exit]' \
        '*:PATH:_files' \
        && return
}
_tamis_tail() {
    _arguments -s -S \
        '(--topic)--topic=[The topic]:NAME: ' \
        '(--id)--id=[The id of the subscription]:ID: ' \
        '(--url)--url=[The broker]:URL: ' \
        '(--token)--token=[The token]:TOKEN: ' \
        '(--count)--count=[End after so many messages]:N: ' \
        '(--help -h)--help[Show this message and exit]' \
        '(--help -h)-h[Show this message and exit]' \
        && return
}
_tamis_subscribe() {
    _arguments -s -S \
        '(--topic)--topic=[The topic]:NAME: ' \
        '(--url)--url=[The broker]:URL: ' \
        '(--token)--token=[The token]:TOKEN: ' \
        '(--id)--id=[The id of a single subscription]:ID: ' \
        '(--expression)--expression=[Its expression]:TEXT: ' \
        '(-s --subscriptions)-s[A UTF-8 file with one subscription per line]:FILE|DIR: ' \
        '(-s --subscriptions)--subscriptions=[A UTF-8 file with one subscription per line]:FILE|DIR: ' \
        '(--language)--language=[xpath and flwr match XML]:value:(xpath events flwr)' \
        '(--payload)--payload=[What consumers get]:value:(ids document nodes message)' \
        '(--webhook)--webhook=[Where the broker sends messages]:URL: ' \
        '(--create-topic)--create-topic[Make the topic]' \
        '(--help -h)--help[Show this message and exit]' \
        '(--help -h)-h[Show this message and exit]' \
        && return
}
_tamis_publish() {
    _arguments -s -S \
        '(--topic)--topic=[The topic]:NAME: ' \
        '(--url)--url=[The broker]:URL: ' \
        '(--token)--token=[The token]:TOKEN: ' \
        '(--events)--events[Each file has one event]' \
        '(--help -h)--help[Show this message and exit]' \
        '(--help -h)-h[Show this message and exit]' \
        '*:DOCUMENT:_files' \
        && return
}
_tamis_serve() {
    _arguments -s -S \
        '(--data)--data=[The folder that keeps messages]:FOLDER:_files' \
        '(--store)--store=[A database of PostgreSQL that keeps them instead]:URL: ' \
        '(--address)--address=[With a store that is shared]:URL: ' \
        '(--host)--host=[The address to listen at]:ADDRESS: ' \
        '(--port)--port=[The port to listen at]:N: ' \
        '*--allow-network=[A network that webhooks may be sent to]:NETWORK: ' \
        '(--allow-http)--allow-http[Webhooks may be sent without TLS]' \
        '*--allow-origin=[A web site whose pages may read answers in a browser]:URL: ' \
        '(--body-bytes)--body-bytes=[The largest body of a request]:N: ' \
        '(--body-seconds)--body-seconds=[How long the body of a request may take to arrive]:SECONDS: ' \
        '(--log)--log=[How warnings and errors are written on standard error]:value:(text json)' \
        '(--help -h)--help[Show this message and exit]' \
        '(--help -h)-h[Show this message and exit]' \
        && return
}
_tamis_explain() {
    _arguments -s -S \
        '(--namespaces)--namespaces=[A file that declares prefixes for expressions]:FILE:_files' \
        '*--ns=[Declare one prefix for expressions]:PREFIX=URI: ' \
        '(--default-ns)--default-ns=[The namespace of element names without a prefix in expressions]:URI: ' \
        '(--declared-encoding)--declared-encoding=[What to do with the encoding that a document declares]:value:(check ignore)' \
        '*--limit=[Change a limit on the size or cost of subscriptions and documents]:NAME=VALUE: ' \
        '(--events)--events[The expression is a condition on events]' \
        '(--transformation)--transformation[The expression is a subscription of tamis transform]' \
        '(--strategy)--strategy=[With --transformation]:value:(auto relative path-sharing-f path-sharing-fw path-sharing-fwr plan-sharing reference)' \
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
        '(--first)--first[Print only the first node of each document or record]' \
        '(--value)--value[Print the value of each node instead of its markup]' \
        '(--null -0)--null[End each result with a NUL byte instead of a line end]' \
        '(--null -0)-0[End each result with a NUL byte instead of a line end]' \
        '(--json)--json[Print one JSON object per node]' \
        '(--namespaces)--namespaces=[A file that declares prefixes for expressions]:FILE:_files' \
        '*--ns=[Declare one prefix for expressions]:PREFIX=URI: ' \
        '(--default-ns)--default-ns=[The namespace of element names without a prefix in expressions]:URI: ' \
        '(--declared-encoding)--declared-encoding=[What to do with the encoding that a document declares]:value:(check ignore)' \
        '(--unsupported)--unsupported=[What to do with XPath that Tamis does not support]:value:(refuse slow)' \
        '(--record)--record=[Match each outermost element with this tag as a separate document]:TAG: ' \
        '(--on-bad-record)--on-bad-record=[Where a document with records is not well-formed]:value:(stop resume)' \
        '(--recursive)--recursive[Also read subfolders]' \
        '*--glob=[Read files in folders and members of archives whose name matches]:PATTERN: ' \
        '(--concatenated)--concatenated=-[Each input contains several documents]::[=lines|nul]:(xml lines nul)' \
        '*--limit=[Change a limit on the size or cost of subscriptions and documents]:NAME=VALUE: ' \
        '(--threads)--threads=[The number of threads]:N: ' \
        '(--output)--output=[Write the results to this file instead of standard output]:FILE:_files' \
        '(--help -h)--help[Show this message and exit]' \
        '(--help -h)-h[Show this message and exit]' \
        ':EXPRESSION: ' \
        '*:DOCUMENT:_files' \
        && return
}
_tamis_check() {
    _arguments -s -S \
        '(-s --subscriptions)-s[A UTF-8 file with one subscription per line]:FILE:_files' \
        '(-s --subscriptions)--subscriptions=[A UTF-8 file with one subscription per line]:FILE:_files' \
        '(--namespaces)--namespaces=[A file that declares prefixes for expressions]:FILE:_files' \
        '*--ns=[Declare one prefix for expressions]:PREFIX=URI: ' \
        '(--default-ns)--default-ns=[The namespace of element names without a prefix in expressions]:URI: ' \
        '(--declared-encoding)--declared-encoding=[What to do with the encoding that a document declares]:value:(check ignore)' \
        '(--unsupported)--unsupported=[What to do with XPath that Tamis does not support]:value:(refuse slow)' \
        '(--dtd)--dtd=[The DTD of the documents (*.dtd)]:FILE:_files' \
        '(--root)--root=[The root element of documents]:NAME: ' \
        '*--catalog=[A folder with files that the DTD refers to]:FOLDER:_files' \
        '(--against)--against=[Compare the answers to the documents with those of this XPath processor]:value:(lxml)' \
        '(--recursive)--recursive[Also read subfolders]' \
        '*--glob=[Read files in folders and members of archives whose name matches]:PATTERN: ' \
        '(--concatenated)--concatenated=-[Each input contains several documents]::[=lines|nul]:(xml lines nul)' \
        '*--limit=[Change a limit on the size or cost of subscriptions and documents]:NAME=VALUE: ' \
        '(--events)--events[The subscriptions are for tamis match-events]' \
        '(--help -h)--help[Show this message and exit]' \
        '(--help -h)-h[Show this message and exit]' \
        '*:DOCUMENT:_files' \
        && return
}
_tamis_subscriptions_compact() {
    _arguments -s -S \
        '(--help -h)--help[Show this message and exit]' \
        '(--help -h)-h[Show this message and exit]' \
        ':FOLDER:_files' \
        && return
}
_tamis_subscriptions_list() {
    _arguments -s -S \
        '(--output)--output=[Write the results to this file instead of standard output]:FILE:_files' \
        '(--help -h)--help[Show this message and exit]' \
        '(--help -h)-h[Show this message and exit]' \
        ':FOLDER:_files' \
        && return
}
_tamis_subscriptions_remove() {
    _arguments -s -S \
        '(--help -h)--help[Show this message and exit]' \
        '(--help -h)-h[Show this message and exit]' \
        ':FOLDER:_files' \
        '*:ID: ' \
        && return
}
_tamis_subscriptions_add() {
    _arguments -s -S \
        '(-s --subscriptions)-s[A file with subscriptions]:FILE|DIR: ' \
        '(-s --subscriptions)--subscriptions=[A file with subscriptions]:FILE|DIR: ' \
        '(--id)--id=[The id of a single subscription]:ID: ' \
        '(--expression)--expression=[Its expression]:TEXT: ' \
        '(--replace)--replace[Replace the subscriptions whose ids are there]' \
        '(--help -h)--help[Show this message and exit]' \
        '(--help -h)-h[Show this message and exit]' \
        ':FOLDER:_files' \
        && return
}
_tamis_subscriptions_create() {
    _arguments -s -S \
        '(--kind)--kind=[xpath]:value:(xpath events transform)' \
        '(-s --subscriptions)-s[A file with subscriptions]:FILE|DIR: ' \
        '(-s --subscriptions)--subscriptions=[A file with subscriptions]:FILE|DIR: ' \
        '(--namespaces)--namespaces=[A file that declares prefixes for expressions]:FILE:_files' \
        '*--ns=[Declare one prefix for expressions]:PREFIX=URI: ' \
        '(--default-ns)--default-ns=[The namespace of element names without a prefix in expressions]:URI: ' \
        '(--dtd)--dtd=[The DTD of the documents (*.dtd)]:FILE:_files' \
        '(--root)--root=[The root element of documents]:NAME: ' \
        '*--catalog=[A folder with files that the DTD refers to]:FOLDER:_files' \
        '(--dtd-trust)--dtd-trust[Assume that every document is valid]' \
        '(--engine)--engine=[The engine]:NAME:(auto automaton reference nfa stacks stacks-cuda pma twigstacks twigstacks-cuda)' \
        '(--unsupported)--unsupported=[What to do with XPath that Tamis does not support]:value:(refuse slow)' \
        '*--limit=[Change a limit on the size or cost of subscriptions and documents]:NAME=VALUE: ' \
        '(--help -h)--help[Show this message and exit]' \
        '(--help -h)-h[Show this message and exit]' \
        ':FOLDER:_files' \
        && return
}
_tamis_subscriptions() {
    _arguments -C \
        '(--help -h)--help[Show this message and exit]' \
        '(--help -h)-h[Show this message and exit]' \
        '1:command:((create\:"Make a folder that keeps subscriptions" add\:"Add subscriptions to a folder" remove\:"Remove subscriptions from a folder" list\:"Print the subscriptions of a folder" compact\:"Compile the subscriptions of a folder together"))' \
        '*::argument:->arguments'
    [ "$state" = arguments ] && case $words[1] in
        create) _tamis_subscriptions_create ;;
        add) _tamis_subscriptions_add ;;
        remove) _tamis_subscriptions_remove ;;
        list) _tamis_subscriptions_list ;;
        compact) _tamis_subscriptions_compact ;;
    esac
}
_tamis_compile() {
    _arguments -s -S \
        '(-s --subscriptions)-s[A UTF-8 file with one subscription per line]:FILE:_files' \
        '(-s --subscriptions)--subscriptions=[A UTF-8 file with one subscription per line]:FILE:_files' \
        '(--output)--output=[The file for the program]:FILE:_files' \
        '(--namespaces)--namespaces=[A file that declares prefixes for expressions]:FILE:_files' \
        '*--ns=[Declare one prefix for expressions]:PREFIX=URI: ' \
        '(--default-ns)--default-ns=[The namespace of element names without a prefix in expressions]:URI: ' \
        '(--unsupported)--unsupported=[What to do with XPath that Tamis does not support]:value:(refuse slow)' \
        '(--skip-bad)--skip-bad[Skip bad subscriptions]' \
        '*--warm=[Match documents first]:DOCUMENT:_files' \
        '(--recursive)--recursive[Also read subfolders]' \
        '*--glob=[Read files in folders and members of archives whose name matches]:PATTERN: ' \
        '(--concatenated)--concatenated=-[Each input contains several documents]::[=lines|nul]:(xml lines nul)' \
        '*--limit=[Change a limit on the size or cost of subscriptions and documents]:NAME=VALUE: ' \
        '(--help -h)--help[Show this message and exit]' \
        '(--help -h)-h[Show this message and exit]' \
        && return
}
_tamis_convert() {
    _arguments -s -S \
        '(--from)--from=[Whose rules these are]:value:(eventbridge sns alertmanager)' \
        '(--output)--output=[Write the results to this file instead of standard output]:FILE:_files' \
        '(--help -h)--help[Show this message and exit]' \
        '(--help -h)-h[Show this message and exit]' \
        '*:FILE:_files' \
        && return
}
_tamis_transform() {
    _arguments -s -S \
        '*-s[A folder with files ID.xq]:DIR|FILE:_files' \
        '*--subscriptions=[A folder with files ID.xq]:DIR|FILE:_files' \
        '(--namespaces)--namespaces=[A file that declares prefixes for expressions]:FILE:_files' \
        '*--ns=[Declare one prefix for expressions]:PREFIX=URI: ' \
        '(--default-ns)--default-ns=[The namespace of element names without a prefix in expressions]:URI: ' \
        '(--declared-encoding)--declared-encoding=[What to do with the encoding that a document declares]:value:(check ignore)' \
        '(--skip-bad)--skip-bad[Skip bad subscriptions]' \
        '(--recursive)--recursive[Also read subfolders]' \
        '*--glob=[Read files in folders and members of archives whose name matches]:PATTERN: ' \
        '(--concatenated)--concatenated=-[Each input contains several documents]::[=lines|nul]:(xml lines nul)' \
        '*--limit=[Change a limit on the size or cost of subscriptions and documents]:NAME=VALUE: ' \
        '(--output)--output=[Write the results to this file instead of standard output]:FILE:_files' \
        '(--help -h)--help[Show this message and exit]' \
        '(--help -h)-h[Show this message and exit]' \
        '*:DOCUMENT:_files' \
        && return
}
_tamis_match_events() {
    _arguments -s -S \
        '(-s --subscriptions)-s[A UTF-8 file with one subscription per line]:FILE:_files' \
        '(-s --subscriptions)--subscriptions=[A UTF-8 file with one subscription per line]:FILE:_files' \
        '(--engine)--engine=[The engine]:NAME:(auto signature reference sff ocm ccm)' \
        '(--interfaces)--interfaces=[The interface of each subscription]:FILE:_files' \
        '(--by)--by=[What matches lists]:value:(subscription filter interface)' \
        '(--skip-bad)--skip-bad[Skip bad subscriptions]' \
        '(--matching-only)--matching-only[Print only events with matches or errors]' \
        '(--threads)--threads=[The number of threads]:N: ' \
        '*--limit=[Change a limit on the size or cost of subscriptions and documents]:NAME=VALUE: ' \
        '(--output)--output=[Write the results to this file instead of standard output]:FILE:_files' \
        '(--help -h)--help[Show this message and exit]' \
        '(--help -h)-h[Show this message and exit]' \
        '*:EVENTS:_files' \
        && return
}
_tamis_match() {
    _arguments -s -S \
        '(-s --subscriptions)-s[A UTF-8 file with one subscription per line]:FILE:_files' \
        '(-s --subscriptions)--subscriptions=[A UTF-8 file with one subscription per line]:FILE:_files' \
        '(--program)--program=[A program that tamis compile saved]:FILE:_files' \
        '(--dtd)--dtd=[The DTD of the documents (*.dtd)]:FILE:_files' \
        '(--root)--root=[The root element of documents]:NAME: ' \
        '*--catalog=[A folder with files that the DTD refers to]:FOLDER:_files' \
        '(--dtd-trust)--dtd-trust[Assume that every document is valid]' \
        '(--engine)--engine=[The engine]:NAME:(auto automaton reference nfa stacks stacks-cuda pma twigstacks twigstacks-cuda)' \
        '(--namespaces)--namespaces=[A file that declares prefixes for expressions]:FILE:_files' \
        '*--ns=[Declare one prefix for expressions]:PREFIX=URI: ' \
        '(--default-ns)--default-ns=[The namespace of element names without a prefix in expressions]:URI: ' \
        '(--declared-encoding)--declared-encoding=[What to do with the encoding that a document declares]:value:(check ignore)' \
        '(--unsupported)--unsupported=[What to do with XPath that Tamis does not support]:value:(refuse slow)' \
        '(--skip-bad)--skip-bad[Skip bad subscriptions]' \
        '(--record)--record=[Match each outermost element with this tag as a separate document]:TAG: ' \
        '(--on-bad-record)--on-bad-record=[Where a document with records is not well-formed]:value:(stop resume)' \
        '(--recursive)--recursive[Also read subfolders]' \
        '*--glob=[Read files in folders and members of archives whose name matches]:PATTERN: ' \
        '(--concatenated)--concatenated=-[Each input contains several documents]::[=lines|nul]:(xml lines nul)' \
        '*--limit=[Change a limit on the size or cost of subscriptions and documents]:NAME=VALUE: ' \
        '(--threads)--threads=[The number of threads]:N: ' \
        '(--matching-only)--matching-only[Print only documents and records with matches]' \
        '(--nodes)--nodes[Print the nodes that each expression selects]' \
        '(--values)--values[Print the nodes]' \
        '(--output)--output=[Write the results to this file instead of standard output]:FILE:_files' \
        '(--help -h)--help[Show this message and exit]' \
        '(--help -h)-h[Show this message and exit]' \
        '*:DOCUMENT:_files' \
        && return
}
_tamis() {
    _arguments -C \
        '(-V --version)-V[Print the version and exit]' \
        '(-V --version)--version[Print the version and exit]' \
        '(--help -h)--help[Show this message and exit]' \
        '(--help -h)-h[Show this message and exit]' \
        '1:command:((match\:"Match documents against subscriptions" match-events\:"Match events against subscriptions" transform\:"Transform documents into messages for subscriptions" convert\:"Convert rules of others to subscriptions of events" compile\:"Compile subscriptions and save the program" subscriptions\:"Keep subscriptions in a folder" check\:"Check subscriptions for errors" select\:"Print the nodes that an expression selects" explain\:"Explain an expression" serve\:"Serve a broker over HTTP" publish\:"Publish documents or events to a broker" subscribe\:"Add subscriptions to a broker" tail\:"Print the messages of a brokers subscription" run\:"Match files against subscriptions on Spark" schema\:"Show the structure that a DTD permits" hardware\:"Generate circuits from subscriptions" workload\:"Generate subscriptions" completion\:"Print a completion script for a shell"))' \
        '*::argument:->arguments'
    [ "$state" = arguments ] && case $words[1] in
        match) _tamis_match ;;
        match-events) _tamis_match_events ;;
        transform) _tamis_transform ;;
        convert) _tamis_convert ;;
        compile) _tamis_compile ;;
        subscriptions) _tamis_subscriptions ;;
        check) _tamis_check ;;
        select) _tamis_select ;;
        explain) _tamis_explain ;;
        serve) _tamis_serve ;;
        publish) _tamis_publish ;;
        subscribe) _tamis_subscribe ;;
        tail) _tamis_tail ;;
        run) _tamis_run ;;
        schema) _tamis_schema ;;
        hardware) _tamis_hardware ;;
        workload) _tamis_workload ;;
        completion) _tamis_completion ;;
    esac
}
if [ "$funcstack[1]" = _tamis ]; then _tamis "$@"; else compdef _tamis tamis; fi
