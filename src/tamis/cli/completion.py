"""``tamis completion``: what a shell needs to complete commands and options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from tamis.cli.console import open_results
from tamis.cli.options import Argument

EXAMPLES = """\b
Examples:
  source <(tamis completion bash)       # in ~/.bashrc
  source <(tamis completion zsh)        # in ~/.zshrc, below compinit
  tamis completion fish > ~/.config/fish/completions/tamis.fish
"""

# scripts/make-completions writes them.
FOLDER = Path(__file__).parent / "completions"


def completion(
    shell: Annotated[
        Literal["bash", "zsh", "fish"], Argument(metavar="SHELL", help="bash, zsh or fish.")
    ],
) -> None:
    """Print the completion of commands and options for a shell."""
    with open_results() as results:
        results.write_bytes((FOLDER / f"tamis.{shell}").read_bytes())
