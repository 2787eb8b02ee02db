"""Repositories whose configuration names a program wherever git knows a setting for one.

Each program is a file of its own, named like the setting; when it runs, it writes its name down.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from tests.story.links.workshop import Agent, Clock, Repo, body

KINDS = ("plain", "embedded bare", "embedded work tree", "gitfile", "submodule")
_HOOKS = (
    "post-index-change reference-transaction post-checkout post-commit pre-commit pre-auto-gc "
    "fsmonitor-watchman "
    "post-merge post-rewrite pre-push commit-msg prepare-commit-msg"
).split()
# Commands of ours, and others that people run: an alias must not come before them.
_ALIASES = (
    "rev-parse rev-list cat-file diff-tree diff-index ls-files check-attr check-ignore config "
    "for-each-ref worktree "
    "symbolic-ref status log remote hash-object"
).split()
_SECTIONS = """
[core]
    fsmonitor = {core.fsmonitor}
    fsmonitorHookVersion = 2
    hooksPath = {hooks}
    pager = {core.pager}
    editor = {core.editor}
    askPass = {core.askPass}
    sshCommand = {core.sshCommand}
    gitProxy = {core.gitProxy}
    alternateRefsCommand = {core.alternateRefsCommand}
    untrackedCache = true
[sequence]
    editor = {sequence.editor}
[filter "canary"]
    clean = {filter.clean}
    smudge = {filter.smudge}
[filter "longer"]
    process = {filter.process}
[diff]
    external = {diff.external}
[diff "canary"]
    command = {diff.command}
    textconv = {diff.textconv}
    cachetextconv = true
[merge "canary"]
    driver = {merge.driver}
[gpg]
    program = {gpg.program}
    format = openpgp
[gpg "ssh"]
    program = {gpg.ssh.program}
    defaultKeyCommand = {gpg.ssh.defaultKeyCommand}
[gpg "x509"]
    program = {gpg.x509.program}
[log]
    showSignature = true
[commit]
    gpgSign = true
[credential]
    helper = {credential.helper}
[interactive]
    diffFilter = {interactive.diffFilter}
[init]
    templateDir = {templates}
[trace2]
    eventTarget = {trace2}
[protocol]
    allow = always
[protocol "ext"]
    allow = always
[submodule "lib"]
    update = !{submodule.update}
    active = true
[uploadpack]
    packObjectsHook = {uploadpack.packObjectsHook}
[trailer "canary"]
    command = {trailer.command}
[include]
    path = {included}
[includeIf "gitdir:**"]
    path = {included_if}
"""
# One for each way to reach a remote; a partial clone asks them one after the other for what it
# lacks.
_REMOTES = """
[extensions]
    partialClone = o
    worktreeConfig = true
[remote "o"]
    url = {nowhere}
    promisor = true
    partialclonefilter = blob:none
    uploadpack = {remote.uploadpack}
    receivepack = {remote.receivepack}
[remote "ext"]
    url = ext::{remote.ext}
    promisor = true
    partialclonefilter = blob:none
[remote "ssh"]
    url = ssh://host.invalid/shop.git
    promisor = true
    partialclonefilter = blob:none
[remote "proxied"]
    url = git://host.invalid/shop.git
    proxy = {remote.proxy}
    promisor = true
    partialclonefilter = blob:none
[remote "vcs"]
    url = somewhere
    vcs = canary
    promisor = true
    partialclonefilter = blob:none
"""


class Canary:
    """The programs, and which of them ran."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "ran"
        self.programs = folder / "programs"
        self.programs.mkdir(parents=True)

    def program(self, name: str, folder: Path | None = None) -> Path:
        path = (folder or self.programs) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            f"#!/bin/sh\necho '{name}' >>'{self.log}'\ncat >/dev/null 2>&1 </dev/null\n"
        )
        path.chmod(0o755)
        return path

    def ran(self) -> set[str]:
        """Since it was last asked."""
        found = set(self.log.read_text().split("\n")) - {""} if self.log.exists() else set()
        self.log.unlink(missing_ok=True)
        return found


class _Programs(dict[str, object]):
    """Makes a program for each setting that a template names."""

    def __init__(self, canary: Canary, known: dict[str, object]) -> None:
        super().__init__(known)
        self.canary = canary

    def __missing__(self, name: str) -> str:
        return str(self.canary.program(name))


def _filled(template: str, names: _Programs) -> str:
    """Names with dots are no names for str.format."""
    for part in template.split("{")[1:]:
        name = part.partition("}")[0]
        template = template.replace(f"{{{name}}}", str(names[name]))
    return template


def poison(
    git_dir: Path, canary: Canary, *, work_tree: Path | None = None, missing: str = ""
) -> None:
    """Set everything that can name a program in a git folder, and take away one object, so that
    it is to be fetched."""
    hooks = canary.folder / "hooks"
    for name in _HOOKS:
        canary.program(f"hook.{name}", hooks).rename(hooks / name)
        canary.program(f"own-hook.{name}", git_dir / "hooks").rename(git_dir / "hooks" / name)
    canary.program("git-remote-canary")
    included, included_if = git_dir / "included", git_dir / "included-if"
    names = _Programs(
        canary,
        {
            "hooks": hooks,
            "templates": canary.folder / "templates",
            "trace2": canary.folder / "trace2",
            "included": included,
            "included_if": included_if,
            "nowhere": canary.folder / "nowhere.git",
        },
    )
    config = _filled(_SECTIONS + _REMOTES, names)
    config += "[alias]\n" + "".join(
        f"    {name} = !{names[f'alias.{name}']}\n" for name in _ALIASES
    )
    config += "[pager]\n" + "".join(f"    {name} = {names[f'pager.{name}']}\n" for name in _ALIASES)
    again = _filled("[core]\n    fsmonitor = {core.fsmonitor}\n    hooksPath = {hooks}\n", names)
    for file in (included, included_if, git_dir / "config.worktree"):
        file.write_text(again)
    if work_tree is not None:
        config += f"[core]\n    bare = false\n    worktree = {work_tree}\n"
    with (git_dir / "config").open("a") as target:
        target.write(config)
    (git_dir / "info").mkdir(exist_ok=True)
    (git_dir / "info" / "attributes").write_text(
        "*.py filter=canary diff=canary merge=canary\n*.md filter=longer\n"
    )
    if missing:
        (git_dir / "objects" / missing[:2] / missing[2:]).unlink()


class Hostile:
    """A home with a session of an agent in a repository of one kind, which is hostile from then
    on."""

    def __init__(self, kind: str, folder: Path, home: Path) -> None:
        self.canary = Canary(folder / "canary")
        self.clock = Clock()
        self.shop = Repo.made(folder / "code" / "shop", self.clock)
        self.cwd = self.shop.path
        self.home = home
        make = {
            "plain": self._plain,
            "embedded bare": self._embedded,
            "embedded work tree": self._embedded_work_tree,
            "gitfile": self._gitfile,
            "submodule": self._submodule,
        }
        self.made: list[str] = []
        make[kind]()

    def _work(self, repo: Repo) -> None:
        """Two commits by an agent, a signed one by a person; then files that are in none yet, or
        written once more."""
        agent = Agent("worker", repo)
        for name in ("quokka", "numbat"):
            agent.prompt(f"Write {name}")
            agent.write(f"{name}.py", body(name))
            self.made.append(agent.commit(f"Add {name}"))
        self._sign(repo)
        agent.prompt("And one more")
        agent.write("quokka.py", body("quokka"))
        agent.write("bilby.py", body("bilby"))
        agent.write("numbat.py", body("numbat", 7))
        agent.say("Done.")
        self.session = agent.save(self.home)

    def _sign(self, repo: Repo) -> None:
        """A commit with a signature, for which git would run a program."""
        repo.git("commit", "-q", "--allow-empty", "-m", "Signed")
        text = repo.shell("git cat-file commit HEAD")
        signature = "gpgsig -----BEGIN PGP SIGNATURE-----\n x"
        signed = self.canary.folder / "signed"
        signed.write_text(text.replace("\n\n", f"\n{signature}\n\n", 1))
        sha = repo.git("hash-object", "-t", "commit", "-w", str(signed))
        repo.git("update-ref", "HEAD", sha)

    def _visit(self, cwd: Path) -> None:
        """Another session, somewhere in the work tree."""
        agent = Agent("visitor", self.shop, cwd=str(cwd))
        agent.prompt("What is this folder?")
        agent.say("A folder.")
        agent.save(self.home)

    def _blob(self, repo: Repo) -> str:
        return repo.sha(f"{self.made[0]}:quokka.py")

    def _plain(self) -> None:
        self._work(self.shop)
        poison(self.cwd / ".git", self.canary, missing=self._blob(self.shop))

    def _gitfile(self) -> None:
        self._work(self.shop)
        missing = self._blob(self.shop)
        elsewhere = self.canary.folder / "elsewhere.git"
        shutil.move(self.cwd / ".git", elsewhere)
        (self.cwd / ".git").write_text(f"gitdir: {elsewhere}\n")
        poison(elsewhere, self.canary, missing=missing)

    def _submodule(self) -> None:
        origin = Repo.made(self.shop.path.parent / "lib", self.clock)
        env = {"GIT_ALLOW_PROTOCOL": "file"}
        self.shop.git("submodule", "--quiet", "add", str(origin.path), "lib", env=env)
        self.shop.commit("With a library")
        lib = self.shop.at(self.cwd / "lib")
        self._work(lib)
        self._visit(self.cwd)
        self.cwd = lib.path
        poison(self.shop.path / ".git" / "modules" / "lib", self.canary, missing=self._blob(lib))

    def _embedded(self) -> None:
        """The repository itself is harmless; a folder in it is one that git takes for bare."""
        self._work(self.shop)
        folder = self._copied()
        poison(folder, self.canary, missing=self.shop.sha(f"{self.made[0]}~1"))
        self._visit(folder)
        self.cwd = folder / "refs"
        self._visit(self.cwd)

    def _embedded_work_tree(self) -> None:
        self._work(self.shop)
        folder = self._copied()
        shutil.copy(self.shop.path / ".git" / "index", folder / "index")
        poison(
            folder,
            self.canary,
            work_tree=self.shop.path,
            missing=self.shop.sha(f"{self.made[0]}~1"),
        )
        self._visit(folder)
        self.cwd = folder

    def _copied(self) -> Path:
        folder = self.shop.path / "vendor" / "hub"
        shutil.copytree(self.shop.path / ".git", folder)
        return folder

    def git(self, *arguments: str) -> str:
        """Plain git, as a person would run it there; what it prints."""
        env = {**os.environ, "PATH": f"{self.canary.programs}{os.pathsep}{os.environ['PATH']}"}
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
        )
        return (done.stdout + done.stderr).decode("utf-8", "replace")
