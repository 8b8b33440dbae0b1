"""``tamis hardware``: subscriptions as circuits."""

from __future__ import annotations

import fcntl
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from tamis.cli import arguments as args
from tamis.cli.console import about, of_document, open_results, say, warn
from tamis.cli.documents import DOCUMENT_HELP, DocumentChoice, Documents, Target
from tamis.cli.options import Argument, Commands, Option
from tamis.core.errors import (
    DocumentError,
    MissingExtra,
    SubscriptionId,
    UnreadableDocument,
    UnwritableOutput,
    UsageError,
)
from tamis.core.limits import Limits
from tamis.documents.source import Source, read

if TYPE_CHECKING:
    from tamis.hardware.circuit import Options
    from tamis.hardware.generate import Generated
    from tamis.hardware.read import Name
    from tamis.hardware.simulate import Simulator
    from tamis.language.subscriptions import Subscriptions
    from tamis.matching.matcher import CompiledMatcher

commands = Commands(
    "hardware",
    {
        "generate": "Generate a circuit from subscriptions, as Verilog.",
        "simulate": "Match documents with a simulated circuit.",
        "report": "Report the area and the clock of a circuit.",
    },
    package="tamis.cli",
    modules=dict.fromkeys(("generate", "simulate", "report"), "hardware"),
    help="Generate circuits for FPGAs from subscriptions; simulate, place and route them.",
)

EXAMPLES = {
    "generate": """\b
Examples:
  tamis hardware generate --subscriptions orders.tsv --dtd order.dtd --output circuit/
  tamis hardware generate --subscriptions orders.tsv --sample incoming/ --output circuit/
""",
    "simulate": """\b
Examples:
  tamis hardware simulate --subscriptions orders.tsv incoming/
  tamis hardware simulate --subscriptions orders.tsv --waveforms orders.vcd order.xml
""",
    "report": """\b
Examples:
  tamis hardware report --subscriptions orders.tsv --dtd order.dtd --estimate
  tamis hardware report --subscriptions orders.tsv --seeds 5 --folder circuit/
""",
}
_BATCH_BYTES = 1 << 24
"""Of documents and answers in one run of the simulator."""
_DOCUMENT_BYTES = 1 << 10
"""What a document takes besides."""
_NOT_SEEN = "not seen"
"""What counts faults of documents that the circuit answered."""


class CircuitOptions(NamedTuple):
    """What the circuit is made of.

    Options:
        system: shared: all queries share a parser, and the columns of their common first steps.
            wide: the same, eight bytes a cycle, without attributes and namespaces. NONT, WONT,
            WOWT, WOWrT: the systems of the FPGA paper.
        cluster: The number of queries of a cluster. Default: that of the system.
        leaves: The leaves of the fan-out tree; 0: none. Default: those of the system.
        outputs: Read match bits out by one output of the chip, or by one of each cluster.
            Default: that of the system.
        depth: The number of elements that may be open at once: a power of 2 from 4 to 1,024.
        dtd: The alphabet has the element names of this DTD.
        sample: The alphabet has the element names of these documents. Repeatable.
        rest: What happens to subscriptions that the circuit cannot have. software: they are listed
            on standard error. refuse: they end the command.
    """

    system: Literal["shared", "wide", "NONT", "WONT", "WOWT", "WOWrT"] = "shared"
    cluster: Annotated[int | None, Option(min=1)] = None
    leaves: Annotated[int | None, Option(min=0)] = None
    outputs: Literal["chip", "cluster"] | None = None
    depth: Annotated[int, Option(min=4)] = 16
    dtd: Path | None = None
    sample: Annotated[list[str] | None, Option("--sample", metavar="DOCUMENT")] = None
    rest: Literal["software", "refuse"] = "software"

    def options(self) -> Options:
        """The options of the generator."""
        try:
            from tamis.hardware.circuit import SYSTEMS  # noqa: PLC0415 - imports Amaranth
        except ModuleNotFoundError as error:
            raise MissingExtra("hardware", error.name or "amaranth") from None
        chosen = SYSTEMS[self.system]
        return chosen._replace(
            cluster=self.cluster or chosen.cluster,
            leaves=chosen.leaves if self.leaves is None else self.leaves,
            outputs=self.outputs or chosen.outputs,
            depth=self.depth,
        )


def generate(
    subscriptions: args.SubscriptionsFile,
    output: Annotated[Path, Option(metavar="FOLDER")],
    circuit: CircuitOptions = CircuitOptions(),
    namespaces: args.Namespaces = args.Namespaces(),
    skip_bad: args.SkipBad = False,
    limit: args.LimitSettings = None,
) -> None:
    """Generate a circuit that matches documents, one byte or eight in each clock cycle.

    Writes tamis.v, the circuit in Verilog, and manifest.json: the subscriptions of each match bit,
    the alphabet, and the prefixes: documents may use those of --ns and --namespaces, which their
    root element declares, with the same URIs. A document with
    another element name, a DTD or other things that the circuit cannot read gets a status instead
    of an answer.

    Options:
        output: The folder for the circuit.
    """
    found = _read(subscriptions, namespaces, skip_bad, limit)
    made = _generated(found, circuit, namespaces, [])
    with _only_user(output):
        made.write(output)
    tables = made.tables
    say(
        f"{output}/tamis.v: {tables.bit_count:,} match bits of {len(found) - len(made.refused):,} "
        f"subscriptions, {len(tables.tags):,} tags, {len(made.circuit.bits):,} clusters"
    )


def simulate(  # noqa: PLR0913, PLR0917 - one for each option
    documents: Annotated[list[str], Argument(metavar="DOCUMENT", help=DOCUMENT_HELP)],
    subscriptions: args.SubscriptionsFile,
    circuit: CircuitOptions = CircuitOptions(),
    namespaces: args.Namespaces = args.Namespaces(),
    skip_bad: args.SkipBad = False,
    choice: DocumentChoice = DocumentChoice(),
    limit: args.LimitSettings = None,
    netlist: bool = False,
    waveforms: Path | None = None,
    folder: Annotated[Path | None, Option(metavar="FOLDER")] = None,
    output: args.Output = None,
) -> None:
    """Match documents with a circuit that Verilator simulates.

    Prints what tamis match prints. What the circuit cannot answer is left to software, and listed
    on standard error with the reason. Without --dtd or --sample, the alphabet has the element names
    of the documents.

    Options:
        netlist: Simulate the netlist after synthesis, instead of the Verilog.
        waveforms: Write the waveforms of all signals to this file, as VCD, for the first 16 MB of
            documents: some 300 bytes a byte.
        folder: Keep the files of the circuit here. The next run with the same subscriptions and
            options is much faster: compiling wide takes a minute or two.
    """
    from tamis.hardware.simulate import Simulator  # noqa: PLC0415 - imports Amaranth
    from tamis.matching.matcher import compile_subscriptions  # noqa: PLC0415 - loads the engines

    found = _read(subscriptions, namespaces, skip_bad, limit)
    limits = args.read_limits(limit)
    targets = Documents(documents, choice, limits)
    given = [] if circuit.dtd or circuit.sample else documents
    if any(one == "-" or Path(one).is_fifo() for one in given):
        raise UsageError("a stream is read only once: give --dtd or --sample, or files")
    if waveforms is not None:
        _check_writable(waveforms)
    made = _generated(found, circuit, namespaces, given, choice)
    software = compile_subscriptions(found, limits=limits)
    reasons: Counter[str] = Counter()
    with _folder(folder) as work, open_results(output) as results:
        simulator = Simulator(made, work, netlist, waveforms and waveforms.absolute())
        for batch in _batches(targets, limits, simulator.answer_bytes):
            answers = _answers([source for _, source in batch], simulator, software, reasons)
            for (target, _), answer in zip(batch, answers, strict=True):
                if isinstance(answer, DocumentError):
                    results.write_error(target, answer)
                else:
                    results.write({**of_document(target), "matches": answer})
        if not_seen := reasons.pop(_NOT_SEEN, 0):
            warn(f"documents in error whose fault the circuit does not see: {not_seen:,}")
        if reasons:
            listed = ", ".join(f"{reason} {count:,}" for reason, count in reasons.items())
            warn(f"software answered documents that are not for the circuit: {listed}")


def _answers(
    sources: Sequence[Source | DocumentError],
    simulator: Simulator,
    software: CompiledMatcher,
    reasons: Counter[str],
) -> Iterator[list[SubscriptionId] | DocumentError]:
    """The answers of a circuit, completed by software; counts why it could not answer.

    Software reads all documents: a circuit does not see all that makes a document an error.
    """
    refused = simulator.generated.refused
    from_circuit = simulator.match([bytes(one.data) for one in sources if isinstance(one, Source)])
    matches = software.match_batch(sources)
    order = {id: place for place, id in enumerate(software.ids)}
    for number, source in enumerate(sources):
        answer = next(from_circuit) if isinstance(source, Source) else ()
        reasons.update(answer if isinstance(answer, tuple) else ())
        if number in matches.errors:
            reasons[_NOT_SEEN] += isinstance(answer, list)
            yield matches.errors[number]
            continue
        ids = [software.subscriptions.ids[query] for query in matches.numbers(number)]
        if isinstance(answer, list):
            ids = sorted({*answer, *(id for id in ids if id in refused)}, key=order.__getitem__)
        yield ids


def report(  # noqa: PLR0913, PLR0917 - one for each option
    subscriptions: args.SubscriptionsFile,
    circuit: CircuitOptions = CircuitOptions(),
    namespaces: args.Namespaces = args.Namespaces(),
    skip_bad: args.SkipBad = False,
    limit: args.LimitSettings = None,
    estimate: bool = False,
    seeds: Annotated[int, Option(min=1)] = 3,
    megahertz: Annotated[float, Option(min=1)] = 250.0,
    folder: Annotated[Path | None, Option(metavar="FOLDER")] = None,
) -> None:
    """Report the area and the clock of a circuit on an ECP5 LFE5U-85F.

    Yosys synthesises the circuit; nextpnr places and routes it. Prints one JSON object.

    Options:
        estimate: Synthesise only: the area is an estimate, and there is no clock.
        seeds: The number of runs of place and route, each with another seed.
        megahertz: The clock that place and route aims at.
        folder: Keep the files of the circuit here, with a drawing of the routed circuit for each
            seed.
    """
    found = _read(subscriptions, namespaces, skip_bad, limit)
    made = _generated(found, circuit, namespaces, [])
    from tamis.hardware import report as reports  # noqa: PLC0415 - imports Amaranth

    with _folder(folder) as work, open_results() as results:
        made.write(work)
        if estimate:
            results.write(reports.estimate(made, work))
            return
        numbers = range(1, seeds + 1)
        results.write(reports.route(made, work, numbers, megahertz))
        for seed in numbers if folder else ():
            reports.write_floor_plan(work, seed)


def _read(
    file: Path, namespaces: args.Namespaces, skip_bad: bool, limit: args.LimitSettings
) -> Subscriptions:
    found = args.parse_subscriptions(file, namespaces, "refuse", args.read_limits(limit))
    return args.usable(found, file, skip_bad)


def _generated(
    subscriptions: Subscriptions,
    circuit: CircuitOptions,
    namespaces: args.Namespaces,
    documents: list[str],
    choice: DocumentChoice = DocumentChoice(),
) -> Generated:
    """The circuit of subscriptions; those that it cannot have are listed."""
    options = circuit.options()
    from tamis.hardware.generate import Generated  # noqa: PLC0415 - imports Amaranth

    alphabet: set[Name] = set()
    declared = namespaces.declared()
    if circuit.dtd is not None:
        graph = args.read_graph(circuit.dtd, None, None)
        for name in graph.dtd.elements:
            prefix, _, local = name.rpartition(":")
            if prefix and prefix not in declared:
                warn(f"{name} is not in the alphabet: declare its prefix: --ns {prefix}=URI")
            else:
                alphabet.add((declared.get(prefix, ""), local))
    for arguments, warns in ((circuit.sample or [], True), (documents, False)):
        alphabet |= _names_of(Documents(arguments, choice), warns) if arguments else set()
    made = Generated(subscriptions, alphabet, declared, options)
    for id, reason in made.refused.items():
        warn(f"{id} is not in the circuit: {reason}")
    if made.refused and circuit.rest == "refuse":
        raise UsageError(f"{len(made.refused):,} subscriptions cannot be put in the circuit")
    return made


def _names_of(documents: Documents, warns: bool) -> set[Name]:
    """The names of the elements of documents; those in error are left out, with a warning."""
    from tamis.documents.parser import parse  # noqa: PLC0415 - loads the kernels
    from tamis.documents.vocabulary import Projection, Vocabulary  # noqa: PLC0415

    vocabulary = Vocabulary()
    for batch in _batches(documents, documents.limits):
        sources = [source for _, source in batch]
        _, errors = parse(sources, vocabulary, Projection(), documents.limits)
        for number, error in errors.items() if warns else ():
            if isinstance(error, UnreadableDocument):
                raise UsageError(about(batch[number][0].name, error))
            warn(f"{about(batch[number][0].name, error)}; its names are not in the alphabet")
    return set(vocabulary)


def _batches(
    documents: Documents, limits: Limits, answer_bytes: int = 0
) -> Iterator[list[tuple[Target, Source | DocumentError]]]:
    """Documents that were read, some megabytes at a time."""
    batch: list[tuple[Target, Source | DocumentError]] = []
    size = 0
    for target in documents:
        source: Source | DocumentError
        try:
            if isinstance(target.document, DocumentError):
                raise target.document
            source = read(target.document, limits)
        except DocumentError as error:
            source = error
        size += _DOCUMENT_BYTES
        if isinstance(source, Source):
            size += len(source.data) + answer_bytes
        batch.append((target, source))
        if size > _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


@contextmanager
def _folder(given: Path | None) -> Iterator[Path]:
    """The folder for the files of tools, or one that is gone afterwards."""
    from tamis.hardware.tools import ToolFailed  # noqa: PLC0415 - imports Amaranth

    if given is not None:
        with _only_user(given):
            yield given.absolute()
        return
    with tempfile.TemporaryDirectory(prefix="tamis-hardware-") as made, _only_user(Path(made)):
        try:
            yield Path(made)
        except ToolFailed as error:
            hint = "what the tool wrote, which --folder FOLDER keeps"
            raise ToolFailed(error.reason, error.more and hint) from None


def _check_writable(file: Path) -> None:
    try:
        with file.open("ab"):
            is_regular = file.is_file()
    except OSError as error:
        raise UnwritableOutput(f"cannot write {file}: {error.strerror}") from None
    if not is_regular:
        raise UnwritableOutput(f"cannot write {file}: it is no regular file")


@contextmanager
def _only_user(folder: Path) -> Iterator[None]:
    """Make a folder, unless it is there, and keep other commands from working in it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / "lock").open("ab")
    except OSError as error:
        raise UnwritableOutput(f"cannot write {folder}: {error.strerror}") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            reason = "another command works there: wait until it ends, or name another folder"
            raise UnwritableOutput(f"cannot write {folder}: {reason}") from None
        try:
            yield
        except BrokenPipeError:
            raise
        except OSError as error:  # the disk is full, or something else has the name of a file
            where = error.filename or folder
            raise UnwritableOutput(f"cannot use {where}: {error.strerror}") from None
