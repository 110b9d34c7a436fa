"""Commands about pisces itself: citation and shell completion."""

from __future__ import annotations

from typing import Annotated, Literal

import tyro

import pisces

PAPER = """@inproceedings{agarwal2021contrastive,
  title     = {Contrastive Behavioral Similarity Embeddings for Generalization in Reinforcement Learning},
  author    = {Agarwal, Rishabh and Machado, Marlos C. and Castro, Pablo Samuel and Bellemare, Marc G.},
  booktitle = {International Conference on Learning Representations},
  year      = {2021},
  eprint    = {2101.05265},
  archiveprefix = {arXiv}
}"""
SOFTWARE = """@software{{pisces,
  title   = {{pisces: behavioral similarity for reinforcement learning}},
  author  = {{{{The pisces authors}}}},
  version = {{{version}}},
  year    = {{2026}}
}}"""


def citation() -> None:
    """Print BibTeX entries of the paper and of this software.

    Cite the paper for the method; if you used this implementation or its results, name the software and its version.
    """
    print(f"% The method:\n{PAPER}\n\n% This implementation:\n{SOFTWARE.format(version=pisces.__version__)}")


def completion(shell: Annotated[Literal["bash", "zsh"], tyro.conf.Positional] = "bash") -> None:
    """Print a script that completes pisces commands and options in a shell.

    For bash: pisces completion bash > ~/.local/share/bash-completion/completions/pisces

    Args:
        shell: bash or zsh.
    """
    from pisces.cli import make_app  # which this command is part of

    make_app().cli(prog="pisces", args=["--tyro-print-completion", shell])
