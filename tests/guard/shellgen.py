"""Shell commands made by a grammar, always the same for a seed: safe to run in a directory of their own, and all sorts besides."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

FILES = [
    "a.txt",
    "b.txt",
    "src/app.py",
    "src/util.py",
    "docs/a.md",
    "docs/b c.md",
    "new.txt",
    "src/new.py",
    "build/x.o",
]
DIRS = ["src", "docs", "build", "."]


class Maker:
    """`command()` is a whole command. What it writes lies below the directory in which it is run."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def pick(self, *choices: str) -> str:
        return self.random.choice(choices)

    # --- words -------------------------------------------------------------------------------------------------------

    def quoted(self, text: str) -> str:
        """One of the ways to write a word."""
        way = self.random.randrange(7)
        if way == 0:
            return f"'{text}'"
        if way == 1:
            return f'"{text}"'
        if way == 2:
            at = self.random.randrange(len(text))
            return f"{self.escaped(text[:at])}'{text[at:]}'"
        if way == 3:
            return "$'" + "".join(f"\\x{ord(char):02x}" if self.random.random() < 0.3 else char for char in text) + "'"
        return self.escaped(text)

    def escaped(self, text: str) -> str:
        return text.replace(" ", "\\ ")

    def file(self) -> str:
        return self.quoted(self.random.choice(FILES))

    def files(self) -> str:
        way = self.random.randrange(8)
        if way == 0:
            return self.pick("src/*.py", "*.txt", "docs/*", "src/[au]*.py", "docs/?.md", "*/*.md")
        if way == 1:
            return self.pick("{a,b}.txt", "src/{app,util}.py", "n{1..3}", "docs/{a,z}.md")
        return " ".join(self.file() for _ in range(self.random.randint(1, 2)))

    def directory(self) -> str:
        return self.pick(*DIRS)

    def text(self) -> str:
        return self.pick("hi", '"a > b"', "'x; rm y'", "$HOME", '"$(date)"', "$((1 + 2))", "a\\ b", "'$x'", '"q\\"q"')

    # --- commands ----------------------------------------------------------------------------------------------------

    def writer(self) -> str:
        forms: list[Callable[[], str]] = [
            lambda: f"echo {self.text()} {self.pick('>', '>>', '>|', '&>', '1>')}{self.pick('', ' ')}{self.file()}",
            lambda: f"printf x > {self.file()} 2>/dev/null",
            lambda: f"echo {self.text()} | tee {self.pick('', '-a ')}{self.files()}",
            lambda: f"cp {self.file()} {self.file()}",
            lambda: f"cp {self.files()} {self.directory()}",
            lambda: f"cp -t {self.directory()} {self.files()}",
            lambda: f"cp -r {self.pick('src', 'docs')} {self.pick('copy', 'build', 'new/')}",
            lambda: f"mv {self.file()} {self.file()}",
            lambda: f"mv {self.files()} {self.directory()}",
            lambda: f"rm -f {self.files()}",
            lambda: f"rm -rf {self.pick('src', 'docs', 'build', 'src/')}",
            lambda: f"touch {self.files()}",
            lambda: f"mkdir -p {self.pick('one', 'one/two', 'src/three')}",
            lambda: f"sed -i{self.pick('', '.bak', ' -e', ' -n')} s/x/y/ {self.files()}".replace("-n s/", "-n -e s/"),
            lambda: f"dd if={self.escaped(self.random.choice(FILES))} of={self.escaped(self.random.choice(FILES))} 2>/dev/null",
            lambda: f"truncate -s {self.pick('0', '3')} {self.file()}",
            lambda: f"ln -sf a.txt {self.file()}",
            lambda: f"ln -sf ../a.txt {self.directory()}",
            lambda: f"install -m 600 {self.file()} {self.file()}",
            lambda: f"sort -o {self.file()} {self.file()}",
            lambda: f"chmod {self.pick('600', '-w', 'u+x', 'a+rx')} {self.files()}",
            lambda: f"cat <<{self.pick('EOF', chr(39) + 'EOF' + chr(39))} > {self.file()}\nhello $x\nEOF\n",
            lambda: f"cat {self.file()} > {self.file()}",
            lambda: f"> {self.file()}",
            lambda: f"gzip -f {self.file()}",
            lambda: f"tar cf {self.pick('t.tar', 'build/t.tar')} {self.pick('src', 'docs')} 2>/dev/null",
            lambda: f"split -b 1 a.txt {self.pick('p', 'src/p')}",
            lambda: f"awk '{{print > \"{self.pick('out.txt', 'src/out')}\"}}' a.txt",
            lambda: f"find {self.pick('src', 'docs', '.')} -name '*.{self.pick('py', 'md')}' -delete",
            lambda: f"find {self.pick('src', 'docs')} -type f -exec {self.pick('rm', 'sed -i s/x/z/', 'touch')} {{}} {self.pick('+', chr(92) + ';')}",
            lambda: f"find {self.pick('src', 'docs')} -type f -print0 | xargs -0 {self.pick('rm -f', 'sed -i s/x/z/')}",
            lambda: "printf 'a.txt\\n' | while read -r f; do rm -f \"$f\"; done",
            lambda: f"perl -pi -e 's/x/y/' {self.files()}",
            lambda: f"rmdir {self.pick('empty', 'src')} 2>/dev/null",
        ]  # fmt: skip
        return self.random.choice(forms)()

    def harmless(self) -> str:
        return self.pick("true", "false", ":", "ls -l", "cat a.txt", "echo done", "grep -c x a.txt", "[ -f a.txt ]", "[[ -d src ]]",
                         "x=1", "wc -l src/app.py", "pwd", "test -s b.txt")  # fmt: skip

    def simple(self) -> str:
        return self.writer() if self.random.random() < 0.75 else self.harmless()

    def wrapped(self, depth: int) -> str:
        """A command inside another; what holds a here-document is never put into quotes."""
        inner = self.command(depth - 1)
        if "\n" in inner:
            return f"{{\n{inner}\n}}"
        plain = "'" not in inner
        f = self.escaped(self.random.choice(FILES))
        forms = [
            f"( {inner} )", f"{{ {inner}; }}", f"if true; then {inner}; else {self.simple_line()}; fi", f"! {inner}",
            f"for f in {self.files()}; do {self.pick('rm -f', 'touch', 'sed -i s/x/y/', 'cat')} \"$f\"; done",
            f"for d in src docs; do ( cd $d && {inner} ); done", f"cd {self.directory()} && {inner}", f"cd {self.directory()}; {inner}",
            f"cd nowhere 2>/dev/null; {inner}", f"f={f}; echo x > \"$f\"; {inner}", f"case $x in a) {inner};; *) {self.simple_line()};; esac",
            f"zap() {{ {inner}; }}; zap", f"zap() {{ rm -f \"$1\"; }}; zap {f}", f"echo $( {inner} )", f"x=`{inner}`" if "`" not in inner and "\\" not in inner else inner,
            f"while read -r line; do {inner}; done < a.txt", f"until true; do {inner}; done; {inner}", f"{inner} & wait",
            f"env A=1 {self.pick('rm -f', 'touch')} {f}", f"nice {self.pick('rm -f', 'touch')} {f}", f"command rm -f {f}", f"\\rm -f {f}",
            f"list=({f} a.txt); rm -f \"${{list[@]}}\"", f"f={f}; mv \"$f\" \"${{f%.*}}.bak\"", f"trap '{inner}' EXIT" if plain else inner,
            f"bash -c '{inner}'" if plain else inner, f"eval '{inner}'" if plain else inner, f"sh -c 'rm -f \"$1\"' _ {f}",
            f"timeout 9 bash -c '{inner}'" if plain else inner, f"pushd src >/dev/null; {inner}; popd >/dev/null; {self.simple_line()}",
            f"{inner} > {f}" if not inner.endswith("wait") else inner, f"set -e; cd {self.directory()}; {inner}",
        ]  # fmt: skip
        return self.random.choice(forms)

    def simple_line(self) -> str:
        while True:
            made = self.simple()
            if "\n" not in made:
                return made

    def command(self, depth: int = 2) -> str:
        if depth <= 0 or self.random.random() < 0.3:
            return self.simple() if depth <= 0 else self.simple_line()
        if self.random.random() < 0.35:
            parts = [self.command(depth - 1) for _ in range(self.random.randint(2, 3))]
            if any("\n" in part for part in parts):
                return "\n".join(parts)
            return self.pick(" && ", "; ", " || ", "\n").join(parts)
        return self.wrapped(depth)


def commands(seed: int, count: int, depth: int = 2) -> list[str]:
    """Distinct ones."""
    maker = Maker(seed)
    found: dict[str, None] = {}
    while len(found) < count:
        found.setdefault(maker.command(depth))
    return list(found)
