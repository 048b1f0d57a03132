"""The rules of the house, read from the sources: each is a function from a checkout to a list of complaints.

test_house.py holds this checkout to them, and shows on made-up ones that each can complain.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:  # mypy and pytest bring it where Python does not have it yet
    import tomli as tomllib

ROOMS = (
    "workers",
    "mappings",
    "nn",
    "optim",
    "migrate",
    "training",
    "doctor",
    "parity",
    "deploy",
    "reports",
    "workflows",
    "cli",
)
ORDER = {name: place for place, name in enumerate((*ROOMS, "__init__", "__main__"))}  # imports run from right to left
# rooms whose tests still stand with those of another room: they come along when that room is next worked on
TESTED_IN = {"optim": "training"}
FRAMEWORKS = {"torch": "torch", "torchvision": "torch", "mindspore": "mindspore"}
LONGEST = 600  # lines
LONGER: dict[str, str] = {}  # file: why it may be longer
DATA = ("*.yaml", "*.json", "py.typed")
DISTRIBUTIONS = {"PIL": "pillow", "yaml": "pyyaml", "sklearn": "scikit-learn"}  # where the import has another name

Rule = Callable[[Path], list[str]]


# What a house is made of


def package_files(checkout: Path) -> list[Path]:
    """The Python files that are installed: those at the root and in the rooms."""
    return sorted([*checkout.glob("*.py"), *(file for room in ROOMS for file in (checkout / room).rglob("*.py"))])


def all_files(checkout: Path) -> list[Path]:
    """Every Python file of the project, tests and benchmarks included."""
    folders = ("tests", "benchmarks", "examples", "docs")
    return package_files(checkout) + sorted(file for name in folders for file in (checkout / name).rglob("*.py"))


def module_name(file: Path, checkout: Path) -> str:
    """`migrate/checkpoint/plan.py` is `msmigrate.migrate.checkpoint.plan`."""
    parts = ("msmigrate", *file.relative_to(checkout).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def modules(checkout: Path) -> dict[str, Path]:
    """Module name -> file, for all of the package."""
    return {module_name(file, checkout): file for file in package_files(checkout)}


@cache
def parse(file: Path) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse(file.read_text(encoding="utf-8"), str(file))


@cache
def nodes(file: Path) -> tuple[ast.AST, ...]:
    """All nodes of a file, which many rules go through."""
    return tuple(ast.walk(parse(file)))


def imports(
    file: Path, checkout: Path, *, at_start: bool = False, in_strings: bool = True
) -> Iterator[tuple[int, str]]:
    """Line and full name of everything a file imports, each name of `from x import y` as `x.y`.

    Imports inside functions count, unless at_start: then only what is imported when the file is. So do modules that
    are named in a string (`python -m msmigrate.…` starts one), unless not in_strings.
    """
    return iter(_imports(file, checkout, at_start, in_strings))


@cache
def _imports(file: Path, checkout: Path, at_start: bool, in_strings: bool) -> tuple[tuple[int, str], ...]:
    """What imports() gives; every rule asks for it, and many for all that is reached from a file."""
    found: list[tuple[int, str]] = []
    package = module_name(file, checkout).split(".")
    if file.name != "__init__.py":
        package = package[:-1]
    for node in _at_start(parse(file)) if at_start else nodes(file):
        if isinstance(node, ast.Import):
            found.extend((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            base = ".".join(part for part in (base, node.module) if part)
            found.extend((node.lineno, f"{base}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and in_strings and not at_start:
            named = re.match(r"msmigrate(\.\w+){2,}(?=:|\.?$)", node.value)
            if named:
                found.append((node.lineno, named[0]))
    return tuple(found)


def _at_start(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        only_for_types = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
        if not (only_for_types or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)):
            yield child
            yield from _at_start(child)


def loads(name: str, checkout: Path) -> dict[str, str]:
    """The frameworks that importing a module of the package brings along, by the modules it imports at start.

    Framework -> the chain of modules that leads there.
    """
    known = modules(checkout)
    found: dict[str, str] = {}
    reached = {name: name}
    waiting = [name]
    while waiting:
        current = waiting.pop()
        for _, imported in imports(known[current], checkout, at_start=True):
            framework = FRAMEWORKS.get(imported.split(".")[0])
            if framework:
                found.setdefault(framework, f"{reached[current]} → {imported}")
            for module in (imported, imported.rpartition(".")[0]):
                if module in known and module not in reached:
                    reached[module] = f"{reached[current]} → {module}"
                    waiting.append(module)
    return found


def settings(checkout: Path) -> dict[str, Any]:
    """What pyproject.toml says."""
    return tomllib.loads((checkout / "pyproject.toml").read_text(encoding="utf-8"))


# The rules


def imports_run_one_way(checkout: Path) -> list[str]:
    """From workers on the left to cli on the right, in the order of ROOMS, and never back."""
    complaints = []
    for file in package_files(checkout):
        here = file.relative_to(checkout)
        importer = here.parts[0].removesuffix(".py")
        for line, name in imports(file, checkout):
            parts = name.split(".")
            room = parts[1] if parts[0] == "msmigrate" and len(parts) > 1 else ""
            if ORDER.get(room, -1) > ORDER.get(importer, -1):
                complaints.append(f"{here}:{line}: {importer} imports {name}, which stands to its right")
    return complaints


def no_imports_run_in_a_circle(checkout: Path) -> list[str]:
    """No file leads back to itself by imports, those inside functions and under TYPE_CHECKING included."""
    known = modules(checkout)
    known.pop("msmigrate", None)  # its functions are imported when they are asked for
    leads: dict[str, set[str]] = {}
    for module, file in known.items():
        names = [name for _, name in imports(file, checkout, in_strings=False)]
        leads[module] = {name if name in known else name.rpartition(".")[0] for name in names} & set(known) - {module}
    circles = []
    for module in sorted(known):
        chain = _way_back(module, leads)
        if chain and min(chain) == module:
            circles.append(" → ".join([*chain, module]))
    return circles


def _way_back(start: str, leads: dict[str, set[str]]) -> list[str]:
    """The shortest chain of imports from a module to itself, or none."""
    before: dict[str, str] = {}
    waiting = [start]
    for current in waiting:
        for name in sorted(leads[current]):
            if name == start:
                chain = [current]
                while chain[-1] != start:
                    chain.append(before[chain[-1]])
                return chain[::-1]
            if name not in before:
                before[name] = current
                waiting.append(name)
    return []


def no_file_knows_both_frameworks(checkout: Path) -> list[str]:
    """A file imports torch, or MindSpore, or neither, and so does all that importing it brings along."""
    complaints = []
    for file in all_files(checkout):
        lines = {FRAMEWORKS[name.split(".")[0]]: line for line, name in imports(file, checkout) if _framework(name)}
        if len(lines) > 1:
            where = " and ".join(f"{framework} (line {line})" for framework, line in sorted(lines.items()))
            complaints.append(f"{file.relative_to(checkout)} imports {where}")
    for name in modules(checkout):
        chains = loads(name, checkout)
        if len(chains) > 1:
            complaints.append(f"{name} loads both: " + "; ".join(chains.values()))
    return complaints


def _framework(name: str) -> bool:
    return name.split(".")[0] in FRAMEWORKS


# Modules that load a framework when they are imported carry its name, save these.
MINDSPORES = ("nn", "optim")  # rooms that are MindSpore's as a whole
LOADS_TORCH = {"msmigrate.parity.record.torch_kinks"}


def only_the_named_load_a_framework(checkout: Path) -> list[str]:
    """Importing a module that is not named for a framework must load none: the front door stays quick and light."""
    complaints = []
    for name in modules(checkout):
        if name in LOADS_TORCH or name.split(".")[1:2] in ([room] for room in MINDSPORES):
            continue
        for framework, chain in loads(name, checkout).items():
            if framework not in name.rpartition(".")[2]:
                complaints.append(f"{name} loads {framework}: {chain}")
    return complaints


def imports_inside_are_relative(checkout: Path) -> list[str]:
    """The package never says its own name in an import: the checkout and the installed copy must not mix."""
    complaints = []
    for file in package_files(checkout):
        for node in nodes(file):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            if any(name.split(".")[0] == "msmigrate" for name in names):
                complaints.append(f"{file.relative_to(checkout)}:{node.lineno}: write it as a relative import")
    return complaints


def everything_is_packaged(checkout: Path) -> list[str]:
    """pyproject.toml lists every folder of the package and matches every data file in one."""
    tool = settings(checkout)["tool"]["setuptools"]
    complaints = []
    environments = {file.parent for file in checkout.glob("*/pyvenv.cfg")}
    for file in sorted(checkout.rglob("__init__.py")):
        if environments.intersection(file.parents):
            continue
        folder = file.parent.relative_to(checkout)
        name = ".".join(("msmigrate", *folder.parts))
        if folder.parts[:1] not in (("build",), ("tests",)) and name not in tool["packages"]:
            complaints.append(f"{folder}/ is not in tool.setuptools.packages")
    inside = (folder for room in (*ROOMS, "recipes") for folder in (checkout / room, *(checkout / room).rglob("*")))
    for folder in (checkout, *(folder for folder in inside if folder.is_dir() and "examples" not in folder.parts)):
        name = ".".join(("msmigrate", *folder.relative_to(checkout).parts))
        patterns = tool["package-data"].get(name, []) if name in tool["packages"] else []
        for file in sorted(folder.glob("*")):
            is_data = any(fnmatch(file.name, pattern) for pattern in DATA)
            if is_data and not any(fnmatch(file.name, pattern) for pattern in patterns):
                complaints.append(f"{file.relative_to(checkout)} is not in tool.setuptools.package-data")
    return complaints


def dependencies_are_those_imported(checkout: Path) -> list[str]:
    """What the package imports is listed in pyproject.toml, and what is listed is used."""
    project = settings(checkout)["project"]
    extras = project.get("optional-dependencies", {})
    lines = [*project["dependencies"], *(line for name in extras if name != "test" for line in extras[name])]
    names = (re.split(r"[<>=~! \[]", line)[0].lower() for line in lines)
    listed = {name for name in names if name != "msmigrate"}  # which `all` names, for its other extras
    used = {}
    for file in package_files(checkout):
        for line, name in imports(file, checkout):
            top = name.split(".")[0]
            if top not in sys.stdlib_module_names | {"msmigrate"}:
                used.setdefault(DISTRIBUTIONS.get(top, top), f"{file.relative_to(checkout)}:{line}")
        if 'find_spec("sklearn")' in file.read_text(encoding="utf-8"):  # its photographs are read, it is not imported
            used["scikit-learn"] = str(file.relative_to(checkout))
    missing = [
        f"{used[name]} imports {name}, which pyproject.toml does not list" for name in sorted(set(used) - listed)
    ]
    return missing + [f"pyproject.toml lists {name}, which nothing imports" for name in sorted(listed - set(used))]


BEGUN = {  # what is called by this name has to be left to the module
    "processes.py": ("Popen", "subprocess.run", "check_call", "check_output", "os.system", "os.fork"),
    "temporary.py": ("mkdtemp", "mkstemp", "TemporaryDirectory", "NamedTemporaryFile"),
}
BEGINS: dict[str, str] = {"training/data/dataset_cache.py": "MindSpore's cache is a daemon, which a shell ends"}


def what_has_to_be_ended_begins_in_one_place(checkout: Path) -> list[str]:
    """Processes and temporary folders are made where a signal finds them, and the next start what SIGKILL left."""
    complaints = []
    for file in package_files(checkout):
        here = file.relative_to(checkout).as_posix()
        for node in (node for node in nodes(file) if isinstance(node, ast.Call)):
            called = ast.unparse(node.func)
            for module, names in BEGUN.items():
                there = called in names or any(called.endswith(f".{name}") for name in names)
                if there and here not in (module, *BEGINS):
                    complaints.append(f"{here}:{node.lineno}: {called} is for {module} alone")
    return complaints


def no_file_is_long(checkout: Path) -> list[str]:
    """A file of the package that has outgrown LONGEST holds two things, and should be two files."""
    lengths = {file: len(file.read_text(encoding="utf-8").splitlines()) for file in package_files(checkout)}
    names = {str(file.relative_to(checkout)): length for file, length in lengths.items() if length > LONGEST}
    return [f"{name} has {length} lines" for name, length in names.items() if name not in LONGER]


def the_rooms_are_mirrored_by_tests(checkout: Path) -> list[str]:
    """Every room has a folder of tests by its name, and no folder of tests is without a room."""
    tested = {file.parent.relative_to(checkout / "tests").parts[0] for file in checkout.glob("tests/*/**/test_*.py")}
    complaints = [f"tests/{room} holds no test" for room in ROOMS if TESTED_IN.get(room, room) not in tested]
    return complaints + [f"tests/{folder} mirrors no room" for folder in sorted(tested - set(ROOMS))]


def what_contributing_names_is_there(checkout: Path) -> list[str]:
    """Every file and folder that CONTRIBUTING's tables name exists."""
    file = checkout / "CONTRIBUTING.md"
    if not file.exists():
        return []
    complaints = []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        named_here = re.findall(r"`([\w./]+)`", line) if line.startswith("|") else []
        for named in named_here:
            places = (checkout / named, checkout / named_here[0] / named)  # a room's own folders follow its name
            if ("/" in named or named.endswith((".py", ".yaml"))) and not any(place.exists() for place in places):
                complaints.append(f"CONTRIBUTING.md:{number}: there is no {named}")
    return complaints


RULES: list[Rule] = [
    imports_run_one_way,
    no_imports_run_in_a_circle,
    no_file_knows_both_frameworks,
    only_the_named_load_a_framework,
    imports_inside_are_relative,
    everything_is_packaged,
    dependencies_are_those_imported,
    what_has_to_be_ended_begins_in_one_place,
    no_file_is_long,
    the_rooms_are_mirrored_by_tests,
    what_contributing_names_is_there,
]
