"""What a run carries on: files that it writes and reads again, which are data then, though no variable passes them on;
and the counters, names and tables that a round of a loop leaves to the next, with the values that lines say."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from ..library_names import OPTIMIZER, SCHEDULE
from ..read_script.abstract_values import (
    Constant,
    DictValue,
    ListValue,
    ParsedArguments,
    ScriptFunction,
    is_known,
    known,
)
from ..read_script.interpreter import CERTAINTIES, OPTION
from ..read_script.syntax import root
from .data_flow import ADDS, EACH, GIVEN, INNER, IS, LOOPS, Flow, Statement
from .passed_over import (
    CONTAINERS,
    FETCHING,
    LISTS,
    OPENING,
    PLAIN_FUNCTIONS,
    READERS,
    WRITERS,
    matches,
    method_reason,
    reason,
)
from .recipe_entries import (
    LONGEST_WORD,
    behind_names,
    behind_settings,
    held_settings,
    read_alone,
    sets_held,
)
from .step_order import carried_on, targets_of, text_of

# those whose second argument is the file; for all others it is the first, or the object of the method
SECOND = (
    *("torch.save", "*.save_file", "*.dump", "*.OmegaConf.save", "torchvision.utils.save_image", "shutil.*", "os.*"),
    *("urllib.request.urlretrieve", "*.download"),
)
OF_A_PATH = ("*.read_text", "*.read_bytes", "*.write_text", "*.write_bytes", "*.glob", "*.rglob", "*.iterdir")
PROGRAMS = ("subprocess.*", "os.system", "os.popen")
# programs that make no data, by their first word
HARMLESS = (
    *("mkdir", "rm", "rmdir", "clear", "cls", "nvidia-smi", "git", "echo", "tensorboard", "ls", "pip", "title", "date"),
    *("hostname", "uname", "which"),
)
OTHERWISE = "what another line gives"  # which is listed itself
OPENS = ("open", *OPENING)
HOLE = "\0"
Path = tuple[str, ...]  # the parts of a path: strings, and for unknown parts HOLE followed by the source
IN_MEMORY = re.compile(r"^\0(io\.)?(BytesIO|StringIO)\(")  # no file, though it is read and written like one
MOST_PATHS = 6  # paths that are followed for one expression


def kind_of(name: str, kinds: dict[str, tuple[str, ...]]) -> str | None:
    """The kind of files that a reader or writer of this name uses, or None."""
    return next((kind for kind, patterns in kinds.items() if matches(name, patterns)), None)


class DataFiles:
    """Values that pass from one statement to another without a variable, through a file that a script writes and reads.

    name_of: gives the qualified name of a call's callee, or "".
    """

    def __init__(self, flow: Flow, name_of: Callable[[Flow, ast.Call], str]) -> None:
        self.flow = flow
        self._name_of = name_of
        self._known: dict[int, list[Path]] = {}
        self._using: dict[int, list[Statement]] = {}  # a definition -> the statements that read it
        for statement in flow.statements:
            for node in statement.nodes:
                for definition in flow.reads.get(id(node), ()):
                    self._using.setdefault(id(definition), []).append(statement)
        alone = {id(statement.alone) for statement in flow.statements}  # any unknown call among these may write
        calls = [(call, self._writes(call, id(call) in alone)) for some in flow.statements for call in some.calls]
        self.writers = [
            (call, kind) for call, kind in calls if kind is not None and (kind != "text" or self._opens(call, "wax+"))
        ]

    def that_make_data(self, live: set[int], kinds: Callable[[ast.AST], Iterable[str]]) -> dict[int, str]:
        """The statements that write a file which the live statements read, or run a program -> that, in words.

        kinds: gives the kinds of a value. Trained values are not data, unless they are loaded again in a loop; where
        the path is unknown, only values that are known to be data count.
        """
        found: dict[int, str] = {}
        for writer, reader, same in self._read_again([s for s in self.flow.statements if id(s) in live]):
            of = {kind for one in self._content(writer) for kind in kinds(one)}
            behind = [one for written in self._content(writer) for one in self.flow.behind(written)] if not same else []
            trained = any({"model", "loss"} & set(kinds(one)) for one in behind)
            data = same or (not trained and ("data" in of or any(map(self._reads, behind))))
            again = same and self._in_a_loop(self.flow.of[id(reader)])  # weights that later steps go on from
            if (of & {"model", "optimizer", "rate"} and not again) or not data:
                continue
            file, line = self.flow.of[id(reader)].place
            for statement in self._statements(writer):
                found[id(statement)] = f"{'it writes' if same else 'it may write'} what {file}:{line} reads"
        for statement in self.flow.statements:
            if any(self._runs_a_program(call) for call in statement.calls):
                found[id(statement)] = "a program, which may make the data"
        return found

    def _in_a_loop(self, statement: Statement, seen: frozenset[int] = frozenset()) -> bool:
        """Whether a statement is in a loop, or in a function that is called in one."""
        if any(isinstance(head.node, LOOPS) for head in statement.around):
            return True
        function = id(statement.function)
        callers = self.flow.calls.get(function, []) if function not in seen else []
        return any(self._in_a_loop(caller, seen | {function}) for caller, _, _ in callers)

    def read_for(self, node: ast.expr) -> bool:
        """Whether a value comes from a file that is read."""
        return any(self._reads(one) for one in self.flow.behind(node))

    def _read_again(self, live: Iterable[Statement]) -> Iterator[tuple[ast.Call, ast.Call, bool]]:
        """Calls that write a file, each with a call of a live statement that may read it, and whether the paths are the
        same."""
        exact: dict[Path, list[tuple[ast.Call, str | None]]] = {}
        of_kind: dict[str, list[ast.Call]] = {}
        for call in (call for statement in live for call in statement.calls):
            kind = kind_of(self._name(call), READERS)
            if (kind is None and not self._unknown(call)) or (kind == "text" and not self._opens(call, "r+")):
                continue
            of_kind.setdefault(kind or "", []).append(call)
            for path in self._paths_of(call):
                exact.setdefault(path, []).append((call, kind))
        for writer, wrote in self.writers:
            paths = self._paths_of(writer)
            same = (call for one in paths for call, kind in exact.get(one, ()) if _says(one, bool(wrote and kind)))
            found = next((call for call in same if call is not writer and self._may(writer, call)), None)
            for folder in of_kind.get("folders", ()) if wrote and found is None else ():
                if any(_inside(one, other) for one in paths for other in self._paths_of(folder)):
                    found = folder
            if found is not None:
                yield writer, found, True
                continue
            if of_kind.get("folders") and all(one[0].startswith(HOLE) for one in paths) and self._fetches(writer):
                yield writer, of_kind["folders"][0], False
                continue
            kinds = {"tables": ("tables", "text"), "text": ("text", "tables")}.get(wrote, (wrote,))
            for reader in (call for kind in kinds if kind not in ("", "folders") for call in of_kind.get(kind, ())):
                pairs = ((one, other) for one in paths for other in self._paths_of(reader))
                if reader is not writer and self._may(writer, reader) and any(_fit(*both) for both in pairs):
                    yield writer, reader, False
                    break

    def _may(self, writer: ast.Call, reader: ast.Call) -> bool:
        """Whether a call may read what another writes in the same run: it does not only run before it."""
        wrote, read = (self._calling(self.flow.of[id(one)]) for one in (writer, reader))
        made = [self.flow.of[id(one)] for at in wrote for one in self._made(at) if id(one) in self.flow.of]
        pairs = [(a, b, a in made) for a in (*wrote, *made) for b in read]
        both = [(a, b, later) for a, b, later in pairs if a.function is b.function and a.source is b.source]
        both = [one for one in both if one[0] is not one[1]] or both  # what calls both says nothing of their order
        again = (isinstance(head.node, LOOPS) for a, b, _ in both for head in a.around if head in b.around)
        before = (a.place < b.place or (a.place == b.place and not later) for a, b, later in both)
        return not both or any(again) or any(before)  # an object's methods run when it is made

    def _made(self, statement: Statement) -> list[ast.expr]:
        """What makes the objects of a callback's class, whose methods a library calls from then on."""
        own = statement.owner if id(statement.function) not in self.flow.calls else None
        return [one.node for one in self.flow.interpreter.made if one.node is not None and one.of.node is own]

    def _calling(self, statement: Statement, depth: int = 0) -> list[Statement]:
        """A statement, and those that call its function, and theirs."""
        found = self.flow.calls.get(id(statement.function), []) if depth < 6 else []
        callers = {id(one): one for one, _, _ in found}.values()
        return [statement, *(more for one in callers for more in self._calling(one, depth + 1))]

    def _writes(self, call: ast.Call, alone: bool) -> str | None:
        """The kind of file that a call writes, "" where it is unknown, None for a call that writes none."""
        name = self._name(call)
        return kind_of(name, WRITERS) or ("" if alone and self._unknown(call) and not kind_of(name, READERS) else None)

    def _unknown(self, call: ast.Call) -> bool:
        """Whether a call is of a function that is neither the script's nor in the lists."""
        method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        known_ = self.flow.function_of(call) is not None or reason(self._name(call)) or method_reason(method)
        return not known_ and method not in (*CONTAINERS, "add_argument") and self._name(call) not in PLAIN_FUNCTIONS

    def _statements(self, writer: ast.Call) -> list[Statement]:
        """The statement of a call that writes, and those that use the file that it opens."""
        at = self.flow.of[id(writer)]
        opened = [d for d in at.defines if d.value is writer] if self._name(writer).endswith(OPENS) else []
        using = dict.fromkeys(s for d in opened for s in self._using.get(id(d), []) if s is not at)
        return [at, *(s for s in using if not (s.alone and s.text.endswith((".close()", ".flush()"))))]

    def _content(self, writer: ast.Call) -> Iterator[ast.expr]:
        """The written values, and all other arguments of the calls that write."""
        for call in (call for statement in self._statements(writer) for call in statement.calls):
            yield from (one for one in (*call.args, *(k.value for k in call.keywords)) if one is not writer)
            yield from [call.func.value] if isinstance(call.func, ast.Attribute) and call is writer else []

    def _fetches(self, writer: ast.Call) -> bool:
        """Whether a call writes what comes over the network."""
        behind = (one for written in self._content(writer) for one in self.flow.behind(written))
        calls = (part for one in behind for part in ast.walk(one) if isinstance(part, ast.Call))
        return any(matches(self._name(call), FETCHING) for call in calls)

    def _reads(self, node: ast.expr) -> bool:
        """Whether a file is read in an expression."""
        return any(isinstance(part, ast.Call) and kind_of(self._name(part), READERS) for part in ast.walk(node))

    def opens(self, call: ast.Call) -> bool:
        """Whether a call opens a file that may be read."""
        return kind_of(self._name(call), READERS) == "text" and self._opens(call, "r+")

    def _runs_a_program(self, call: ast.Call) -> bool:
        """Whether a call runs a program that may make data."""
        if not matches(self._name(call), PROGRAMS) or not call.args:
            return False
        command = call.args[0]
        first = command.elts[0] if isinstance(command, (ast.List, ast.Tuple)) and command.elts else command
        words = self.paths(first)[0][0].split()
        return not words or words[0] not in HARMLESS

    def _name(self, call: ast.Call) -> str:
        name = self._name_of(self.flow, call)
        return name or (f".{call.func.attr}" if isinstance(call.func, ast.Attribute) else "")

    def _opens(self, call: ast.Call, letters: str) -> bool:
        """Whether a call opens a file in a mode with one of these letters; an unknown mode counts as such."""
        if not self._name(call).endswith(OPENS):
            return True
        modes = [k.value for k in call.keywords if k.arg == "mode"]
        modes += call.args[:1] if self._name(call) == ".open" else call.args[1:2]  # Path(…).open("w")
        value = self.flow.value(modes[0]) if modes else Constant("r")
        return not isinstance(value, Constant) or any(letter in str(value.value) for letter in letters)

    def _paths_of(self, call: ast.Call) -> list[Path]:
        """The possible paths in a call's arguments."""
        if id(call) in self._known:
            return self._known[id(call)]
        name = self._name(call)
        given = [*call.args, *(k.value for k in call.keywords)]
        if kind_of(name, WRITERS) or name.endswith(OPENS):
            at = 1 if matches(name, SECOND) else 0
            given = call.args[at : at + 1] or [k.value for k in call.keywords]
        of_path = (matches(name, OF_A_PATH) and not matches(name, LISTS)) or name == ".open"
        if isinstance(call.func, ast.Attribute) and of_path:
            given = [call.func.value]
        found = [path for one in given for path in self.paths(one)][:MOST_PATHS]
        self._known[id(call)] = [path for path in map(_plain, found) if path and not IN_MEMORY.search(path[0])]
        return self._known[id(call)]

    def paths(self, node: ast.expr, depth: int = 0) -> list[Path]:
        """The possible paths of an expression, each as its parts."""
        value = self.flow.value(node)
        if isinstance(value, Constant) and type(value.value) in (str, int):
            return [(str(value.value),)]
        parts: list[ast.expr] | None = None
        if isinstance(node, ast.JoinedStr):
            parts = [one.value if isinstance(one, ast.FormattedValue) else one for one in node.values]
        elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Div)):
            parts = [node.left, *([ast.Constant("/")] if isinstance(node.op, ast.Div) else []), node.right]
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            return self._filled(node.left, r"%[-\w.]*", depth)
        elif isinstance(node, ast.Call) and node.args:
            name = self._name(node).rpartition(".")[2]
            if name == "format" and isinstance(node.func, ast.Attribute):
                return self._filled(node.func.value, r"\{[^}]*\}", depth)
            if name in ("join", "joinpath"):
                own = [node.func.value] if name == "joinpath" and isinstance(node.func, ast.Attribute) else []
                parts = [part for one in (*own, *node.args) for part in (one, ast.Constant("/"))][:-1]
            elif name in ("open", "Path", "PurePath", "str", "fspath", "abspath", "realpath", "normpath", "glob"):
                parts = node.args[:1]
        elif isinstance(node, (ast.Name, ast.Attribute)) and depth < 8:
            return self._named(node, depth)
        if isinstance(node, ast.Constant):
            return [(str(node.value),)]
        if parts is None:
            return [(HOLE + ast.unparse(node),)]
        found: list[Path] = [()]
        for part in parts:
            found = [_joined(one, more) for one in found for more in self.paths(part, depth + 1)][:MOST_PATHS]
        return found

    def _filled(self, pattern: ast.expr, hole: str, depth: int) -> list[Path]:
        """The paths of a format string with its values filled in."""
        texts = [path[0] for path in self.paths(pattern, depth + 1) if len(path) == 1 and not path[0].startswith(HOLE)]
        return [
            tuple(p for part in re.split(f"({hole})", text) for p in [HOLE if re.fullmatch(hole, part) else part] if p)
            for text in texts
        ]

    def _named(self, node: ast.Name | ast.Attribute, depth: int) -> list[Path]:
        """The paths of a name or an attribute with a single definition, or of a parameter's arguments."""
        if isinstance(node, ast.Name):
            definitions = list(self.flow.reads.get(id(node), ()))
        else:
            definitions = self.flow.attributes.get(node.attr, [])
        given = [one for d in definitions if d.way == GIVEN for one in self.flow.arguments_of(d)]
        values = [d.value for d in definitions if d.way == IS and d.value is not None and not d.path]
        several = given if given and not values else values if len(values) == len(definitions) == 1 else []
        found = [path for one in several for path in self.paths(one, depth + 1)]
        text = ast.unparse(node).removeprefix("self.")
        return found or [(HOLE + (text if isinstance(node, ast.Name) else f".{text.partition('.')[2] or text}"),)]


def _joined(path: Path, more: Path) -> Path:
    """Two parts of a path joined; adjacent strings become one."""
    if path and more and not path[-1].startswith(HOLE) and not more[0].startswith(HOLE):
        return (*path[:-1], path[-1] + more[0], *more[1:])
    return (*path, *more)


def _plain(path: Path) -> Path:
    """A path in a normal form: without ./ in front, a slash at its end, and everything from a * on."""
    starred = next((at for at, one in enumerate(path) if "*" in one and not one.startswith(HOLE)), None)
    path = path if starred is None else (*path[:starred], path[starred].partition("*")[0])
    texts = [one if one.startswith(HOLE) else re.sub("/+", "/", one.replace("\\", "/")) for one in path]
    if texts and not texts[0].startswith(HOLE):
        texts[0] = re.sub(r"^(\./)+", "", texts[0])
    if texts and not texts[-1].startswith(HOLE):
        texts[-1] = texts[-1].rstrip("/")
    return tuple(one for one in texts if one)


def _says(path: Path, known_: bool) -> bool:
    """Whether a path is specific enough to be recognized; known_: whether both calls are known to take a path."""
    text = r"^\0.*\.|[A-Za-z]{2}" if known_ else r"^[^\0\s]*[\w\]]([/\\]\w|\.[A-Za-z]\w{1,6}$)"
    return any(re.search(text, part) for part in path)


def _inside(one: Path, folder: Path) -> bool:
    """Whether a path is in a folder."""
    texts = len(folder) == 1 and not folder[0].startswith(HOLE)
    beginning = one[0].startswith(f"{folder[0]}/") if texts else one[: len(folder)] == folder
    return beginning and _says(folder, True)


def _fit(one: Path, other: Path) -> bool:
    """Whether two paths may be the same: each may begin and end as the other does."""

    def hole(part: str) -> bool:
        return part.startswith(HOLE)

    def option(part: str) -> bool:
        return hole(part) and "(" not in part and not part[1:].isidentifier()

    first, last = (one[0], other[0]), (one[-1], other[-1])
    if not any(map(hole, (*one, *other))) or (all(map(option, first)) and first[0] != first[1]):
        return False  # both are known, or one begins with options.out and the other with options.data
    begins = any(map(hole, first)) or first[0].startswith(first[1]) or first[1].startswith(first[0])
    return begins and (any(map(hole, last)) or last[0].endswith(last[1]) or last[1].endswith(last[0]))


SHORT = 20  # statements of a function whose values are said where it is handed over


@dataclass(frozen=True)
class Counting:
    """The counters of a script, of which reading only knows the first value.

    attributes: those that a method or a loop computes from their old value; names: variables that are added to, with
    their function; set_again: attributes that a method and another statement set; each: the variables of loops;
    carried: a statement (its id) -> the names that it sets for the next round of a loop, with what they begin with;
    changing: the names and attributes in the statements that change an object, such as a list; filled: the variables
    whose object a statement changes, or that one computes from their old value, with their function; read_alone: the
    settings that a live statement reads by their name, and those that were said: the object (its id) and the name;
    unsaid: the names of tables that statements change, and that something which was not read gets as a whole; held: the
    objects of settings that it gets.
    """

    flow: Flow
    attributes: frozenset[str]
    names: frozenset[tuple[int, str]]
    set_again: frozenset[str]
    each: frozenset[str]
    carried: dict[int, dict[str, str]]
    changing: frozenset[str]
    filled: frozenset[tuple[int, str]]
    read_alone: set[tuple[int, str]]
    unsaid: frozenset[str]
    held: frozenset[int]
    open: set[int]

    @classmethod
    def read(cls, flow: Flow, live: set[int], open_: set[int], within: Callable[[Statement], bool]) -> Counting:
        """The counters of a script. live: the statements (their ids) that reach its training; open_: functions whose
        statements are accounted for one by one; within: whether a statement is part of a model or data set."""
        attributes: set[str] = set()
        names: set[tuple[int, str]] = set()
        setters: dict[str, list[bool]] = {}  # of each attribute: whether it is a method
        for statement in flow.statements:
            node, value = statement.node, getattr(statement.node, "value", None)
            for one in (part for target in targets_of(statement) for part in ast.walk(target)):
                if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store):
                    setters.setdefault(one.attr, []).append(_is_method(statement))
            if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                names.add((id(statement.function), node.target.id))
            if value is None or not (_is_method(statement) or _in_a_loop(statement)):
                continue
            read = {ast.unparse(part) for part in ast.walk(value) if isinstance(part, ast.Attribute)}
            written = [one for one in targets_of(statement) if isinstance(one, ast.Attribute)]
            attributes |= {one.attr for one in written if isinstance(node, ast.AugAssign) or ast.unparse(one) in read}
        set_again = {name for name, found in setters.items() if any(found) and len(found) > 1}
        heads = [part for s in flow.statements for part in (s.node, *s.nodes)]
        loops = (ast.For, ast.AsyncFor, ast.comprehension)
        lists = ((part.target, flow.value(part.iter)) for part in heads if isinstance(part, loops))
        over = [one for one, of in lists if not (isinstance(of, ListValue) and of.closed and len(of.items) == 1)]
        each = {part.id for target in over for part in ast.walk(target) if isinstance(part, ast.Name)}
        found = frozenset(attributes), frozenset(names), frozenset(set_again), frozenset(each)
        changing = _changing(flow)
        unsaid = _unsaid(flow, live, changing)
        of = flow.statements
        hidden = [s for s in of if s.function and id(s.function) not in open_ and (id(s) in live or within(s))]
        held = frozenset(id(one) for s in of if id(s) in live for _, one, _ in held_settings(s.nodes, flow, open_))
        alone = read_alone(flow, live - {id(s) for s in hidden})
        return cls(flow, *found, carried_on(flow), changing, _filled(flow), alone, unsaid, held, open_)

    def of(self, node: ast.expr) -> bool:
        """Whether an expression reads such an attribute."""
        return any(isinstance(part, ast.Attribute) and part.attr in self.attributes for part in ast.walk(node))

    def values(self, statement: Statement, why: str = "") -> str:
        """The values of the names in a statement and in its conditions, as `why` says them; what those that it sets for
        the next round begin with; both values of one that has two: `x is 4, step begins with 0, w is 1 or 2`."""
        begin = [f"{name} begins with {v}" for name, v in self.carried.get(id(statement), {}).items() if v]
        several = {node.id: self._several(node) for node in statement.nodes if isinstance(node, ast.Name)}
        said_so = {name for name, v in self.carried.get(id(statement), {}).items() if v}
        several = {n: [one or OTHERWISE for one in v] for n, v in several.items() if any(v) and n not in said_so}
        either = [f"{name} is {' or '.join(sorted(found))}" for name, found in several.items()]
        tests = [head for head in statement.around if isinstance(head.node, ast.If)]
        said = (part for head in tests if head.source.text(head.expressions[0])[:40] in why for part in head.nodes)
        parts = [*statement.nodes, *said, *self._handed_over(statement)]
        plain = behind_names(parts, self.flow.interpreter, self.moves)
        return ", ".join(filter(None, [plain, *self._tables(statement), *begin, *either]))

    def settings(self, statement: Statement) -> Iterator[str]:
        """What settings have that a statement mentions as a whole, where nothing else says it: each is said once, and
        where an optimizer or a schedule is made of them."""
        made = {getattr(self.flow.value(call), "family", "") for call in statement.calls}
        again = bool(made & {OPTIMIZER, SCHEDULE})
        yield from behind_settings(statement.nodes, self.flow, self.read_alone, self.open, again)

    def all_values(self, statement: Statement) -> str:
        """The values of the names in a statement, and of the settings that it mentions."""
        return ", ".join(filter(None, [self.values(statement), *self.settings(statement)]))

    def _handed_over(self, statement: Statement) -> Iterator[ast.AST]:
        """What a short function that a statement hands over, or that only computes and is called, reads of the file or
        of what is around it, or of its object: `steps` of `warmed(opt, steps)`, which makes `LambdaLR(opt, ramp)`."""
        called = {id(call.func): id(self.flow.function_of(call)) in self.open for call in statement.calls}
        parts = (one for one in statement.nodes if isinstance(one, (ast.Name, ast.Attribute)))
        values = ((one, self.flow.value(one)) for one in parts if not called.get(id(one)))
        functions = {id(of.node): (of, id(one) not in called) for one, of in values if isinstance(of, ScriptFunction)}
        for of, given in functions.values():
            inside = self.flow.inside_of.get(id(of.node), [])
            nodes = (node for one in inside if len(inside) <= SHORT for node in one.nodes)
            for node in (node for node in nodes if isinstance(node, ast.expr)):
                ways = self.flow.reads.get(id(root(node)), ())
                around = (id(one.statement.node) if one.way == GIVEN else id(one.statement.function) for one in ways)
                inner = of.scope.parent is not None or not given
                outer = inner and of.owner is None and id(of.node) not in around
                own = given and isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "self"
                if (ways and outer) or (own and of.receiver is not None):
                    yield node

    def too_long(self, node: ast.stmt) -> bool:
        """Whether a statement has a table of numbers that is too long to be said where it is read, or sets a part of
        one that statements change, so that what it has is not said there."""
        targets = getattr(node, "targets", [])
        names = (getattr(part, "id", getattr(part, "attr", "")) for one in targets for part in ast.walk(one))
        if any(one in self.unsaid for one in names) or sets_held(targets, self.flow, self.held, self.read_alone):
            return True
        value = self.flow.value(node.value) if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value else None
        return isinstance(value, DictValue) and is_known(value) and len(repr(known(value))) > LONGEST_WORD

    def _tables(self, statement: Statement) -> Iterator[str]:
        """The short lists and tables that its calls are given by name."""
        given = (one for call in statement.calls for one in (*call.args, *(k.value for k in call.keywords)))
        named = [one.value if isinstance(one, ast.Starred) else one for one in given]
        loops = (ast.For, ast.AsyncFor, ast.comprehension)
        named += [one.iter for one in (statement.node, *statement.nodes) if isinstance(one, loops)]
        named += [part for one in named for part in _unpacked(one)]
        picked = (one for one in statement.nodes if isinstance(one, ast.Subscript) and isinstance(one.ctx, ast.Load))
        named += [one.value for one in picked if self.flow.value(one.slice) is None or _is_open(self.flow, one.slice)]
        copied = [one.func if isinstance(one, ast.Call) else None for one in named]
        copies = [one.value if isinstance(one, ast.Attribute) and one.attr == "copy" else None for one in copied]
        named = [copy or one for copy, one in zip(copies, named, strict=True)]
        for one in (one for one in named if isinstance(one, (ast.Name, ast.Attribute, ast.Subscript))):
            value, of = self.flow.value(one), root(one) if isinstance(one, ast.Subscript) else one
            name = getattr(of, "id", getattr(of, "attr", ""))
            varied = id(one) in self.flow.interpreter.varied or name in self.changing
            if isinstance(value, (ListValue, DictValue)) and not varied and not self.moves(one):
                text = repr(known(value))
                if is_known(value) and known(value) and len(text) <= LONGEST_WORD:
                    yield f"{ast.unparse(one)} is {text}"

    def moves(self, node: ast.AST) -> bool:
        """Whether a name, an attribute or an element may have another value whenever it is read."""
        if isinstance(node, ast.Name):
            found, at = self.flow.reads.get(id(node), ()), self.flow.of.get(id(node))
            scopes = {id(at.function) if at is not None else 0, *(id(one.statement.function) for one in found)}
            each = node.id in self.each and (not found or any(one.way in (EACH, INNER) for one in found))
            return each or any((of, node.id) in self.names for of in scopes) or bool(self._several(node))
        if isinstance(node, ast.Attribute):
            written = (part for one in self.flow.options for target in targets_of(one) for part in ast.walk(target))
            of_line = isinstance(self.flow.value(node.value), ParsedArguments)  # args.k is not self.k
            stays = of_line and all(getattr(part, "attr", "") != node.attr for part in written)
            return not stays and (node.attr in self.attributes or node.attr in self.set_again)
        return isinstance(node, ast.Subscript) and self.moves(node.value)

    def _several(self, node: ast.Name) -> list[str]:
        """The values of a name that has one or another by a condition that reading does not decide, each as text, ""
        for what is no number or string; nothing where it has one value."""
        ways = [one for one in self.flow.reads.get(id(node), ()) if one.way == IS and one.value is not None]
        reached = self.flow.interpreter.reached
        ranks = {id(one): reached.get(id(one.statement.node), (0, ()))[0] for one in ways}
        live = [one for one in ways if CERTAINTIES[ranks[id(one)]] != OPTION]
        values = sorted({text_of(self.flow, one) for one in live})
        return values if len({ranks[id(one)] for one in live}) > 1 and len(values) > 1 else []

    def starts_anew(self, statement: Statement) -> bool:
        """Whether it sets such a counter again, in a method or in a round of a loop, or a name for the next round."""
        targets, value = targets_of(statement), getattr(statement.node, "value", None) or ast.Pass()
        called = {id(root(part.func)) for part in ast.walk(value) if isinstance(part, ast.Call)}
        reads = any(isinstance(part, ast.Name) and id(part) not in called for part in ast.walk(value))
        if id(statement) in self.carried:
            return not reads
        if _is_method(statement) and any(isinstance(one, ast.Attribute) and self.of(one) for one in targets):
            return True
        if not _in_a_loop(statement) or reads:  # what is read may be new by itself
            return False
        parts = [part for one in targets for part in ast.walk(one)]
        names = {(id(statement.function), part.id) for part in parts if isinstance(part, ast.Name)}
        filled = bool(names & (self.names | self.filled))
        return filled or any(getattr(one, "attr", "") in self.changing for one in parts)


def _changing(flow: Flow) -> frozenset[str]:
    found = [s for s in flow.statements if any(one.way == ADDS for one in s.defines)]
    calls = [call for s in found if isinstance(s.node, ast.Assign) for call in s.calls]
    own = [part for call in calls for part in (*flow.writes(call), getattr(call.func, "value", call.func))]
    each = (s.node.targets if isinstance(s.node, ast.Assign) and s.calls else s.nodes for s in found)
    parts = (node for part in (*own, *(part for nodes in each for part in nodes)) for node in ast.walk(part))
    return frozenset(getattr(node, "id", getattr(node, "attr", "")) for node in parts) - {""}


def _unsaid(flow: Flow, live: set[int], changing: frozenset[str]) -> frozenset[str]:
    each = [s for s in flow.statements if id(s) in live]
    unread = (call for s in each for call in s.calls if flow.function_of(call) is None and not flow.passed(call.func))
    given = [one for call in unread for one in (*call.args, *(k.value for k in call.keywords))]
    given += [part for one in given for part in _unpacked(one)]
    added = [s.node.target for s in each if isinstance(s.node, ast.AugAssign)]  # to a part of a table
    given += [one.value for one in added if isinstance(one, ast.Subscript)]
    return changing & {
        getattr(one, "id", getattr(one, "attr", "")) for one in given if isinstance(flow.value(one), DictValue)
    }


def _unpacked(node: ast.expr) -> list[ast.expr]:
    """The tables that another one takes in: of `{**usual, **given}`."""
    pairs = zip(node.keys, node.values, strict=True) if isinstance(node, ast.Dict) else ()
    return [value for key, value in pairs if key is None]


def _is_open(flow: Flow, key: ast.expr) -> bool:
    """Whether reading cannot tell which element this chooses."""
    return not isinstance(key, (ast.Slice, ast.Constant)) and not is_known(flow.value(key))


def _filled(flow: Flow) -> frozenset[tuple[int, str]]:
    found: set[tuple[int, str]] = set()
    for statement in flow.statements:
        value = (
            getattr(statement.node, "value", None) if isinstance(statement.node, (ast.Assign, ast.AnnAssign)) else None
        )
        read = {part.id for part in ast.walk(value or ast.Pass()) if isinstance(part, ast.Name)}
        written = {part.id for one in targets_of(statement) for part in ast.walk(one) if isinstance(part, ast.Name)}
        found |= {(id(statement.function), name) for name in read & written}
        for node in (one for one in statement.nodes if isinstance(one, ast.Name)):
            changes = (one.statement for one in flow.reads.get(id(node), ()) if one.way == ADDS)
            found |= {(id(one.function), node.id) for one in changes}
    return frozenset(found)


def _is_method(statement: Statement) -> bool:
    """Whether it stands in a method that may run more than once."""
    return statement.owner is not None and getattr(statement.function, "name", "__init__") != "__init__"


def _in_a_loop(statement: Statement) -> bool:
    return any(isinstance(head.node, LOOPS) for head in statement.around)
