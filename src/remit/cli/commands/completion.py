"""`remit completion`: lets a shell complete commands, options, jobs and recipes."""

from __future__ import annotations

import click

from remit.cli import exit_codes
from remit.cli.context import CommandState
from remit.cli.options import pass_state


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@pass_state
@click.pass_context
def command(context: click.Context, state: CommandState, shell: str) -> int:
    """Print a shell completion script.

    \b
    bash   remit completion bash > ~/.local/share/bash-completion/completions/remit
    zsh    remit completion zsh > ~/.zfunc/_remit   (with ~/.zfunc in fpath)
    fish   remit completion fish > ~/.config/fish/completions/remit.fish
    """  # noqa: D301 - click reads the backspace: these lines stay as they are
    from click.shell_completion import get_completion_class

    from remit.cli.root import COMPLETE

    root = context.find_root()
    complete = get_completion_class(shell)
    if complete is None:
        raise click.UsageError(f"There is no completion for {shell}.", context)
    state.output.out.line(complete(root.command, {}, "remit", COMPLETE).source().rstrip("\n"))
    return exit_codes.OK
