"""What reaches a training by a way that no name shows: an operator, a lambda, an exception, a library's settings, or a
change of what was handed over before."""

from __future__ import annotations

from pathlib import Path

import pytest
from drafts import drafted, listed

SCRIPT = """
import argparse, collections, contextlib, functools, math, os, random, signal, sys, threading
import numpy as np, torch, torch.nn as nn
import elsewhere
from elsewhere import Rows, Stop, Engine, read, use
{top}
net = nn.Linear(4, 7)
opt = torch.optim.SGD(net.parameters(), lr=0.2)
rows = read("a.csv")
{data}
data = Rows(rows)
loader = torch.utils.data.DataLoader(data, batch_size=8)
mse = nn.MSELoss()
{before}
def train():
    for epoch in range(6):
        {round}
        for x, y in loader:
            loss = mse(net(x), y)
            {step}
            opt.zero_grad()
            loss.backward()
            opt.step()
        {end}
{call}
"""
AT = {"round": 8, "end": 8, "step": 12}


def lines_of(folder: Path, **parts: str) -> list[str]:
    text = SCRIPT
    for name in ("top", "data", "before", "round", "step", "end", "call"):
        part = parts.get(name, "train()" if name == "call" else "pass")
        text = text.replace(f"{{{name}}}", part.replace("\n", "\n" + " " * AT.get(name, 0)))
    (folder / "train.py").write_text(text)
    return listed(folder / "train.py")


def has(lines: list[str], start: str) -> bool:
    return any(line.startswith(start) for line in lines)


HALVES = """
class Halved:
    def {method}(self{more}):
        for group in opt.param_groups:
            group["lr"] *= 0.5
        return 1
halved = Halved()
"""


@pytest.mark.parametrize(
    ("method", "more", "line"),
    [
        ("__enter__", "", "with halved:"),
        ("__exit__", ", *raised", "with halved:"),
        ("__add__", ", k", "halved + 3"),
        ("__iadd__", ", k", "halved += 3"),
        ("__matmul__", ", k", "halved @ 3"),
        ("__lshift__", ", k", "halved << 3"),
        ("__getitem__", ", k", "halved[3]"),
        ("__setitem__", ", k, v", "halved[3] = 5"),
        ("__delitem__", ", k", "del halved[3]"),
        ("__iter__", "", "for _ in halved:"),
        ("__len__", "", "len(halved)"),
        ("__contains__", ", k", "3 in halved"),
        ("__neg__", "", "-halved"),
        ("__eq__", ", k", "halved == 3"),
        ("__bool__", "", "if halved:"),
        ("__next__", "", "next(halved)"),
        ("__str__", "", "str(halved)"),
        ("__float__", "", "float(halved)"),
        ("__radd__", ", k", "3 + halved"),
        ("__invert__", "", "~halved"),
    ],
)
def test_what_runs_a_special_method_that_trains_is_listed_where_it_stands(
    method: str, more: str, line: str, tmp_path: Path
) -> None:
    made = HALVES.replace("{method}", method).replace("{more}", more)
    body = f"{line}\n    pass" if line.endswith(":") else line
    assert has(lines_of(tmp_path, before=made, round=body), line)


@pytest.mark.parametrize(
    ("before", "line"),
    [
        ("again = lambda: opt.step()", "again()"),
        ("table = {}\ntable['a'] = lambda: opt.step()", "table['a']()"),
        ("table = [('a', lambda: opt.step())]", "table[0][1]()"),
        ("again = functools.partial(lambda k: net.weight.data.mul_(k), 0.5)", "again()"),
        ("either = {True: lambda: opt.step(), False: print}", "either[use()]()"),
    ],
)
def test_a_call_of_a_lambda_that_trains_is_listed(before: str, line: str, tmp_path: Path) -> None:
    assert has(lines_of(tmp_path, before=before, end=line), line)


GROWS = "{holds}\ndef grow():\n    {names}\n    {change}\n"


@pytest.mark.parametrize(
    ("holds", "names", "change", "says"),
    [
        ("scale = 1.5", "global scale", "scale *= 1.1", "scale begins with 1.5"),
        ("scale = 1.5", "global scale", "scale = scale * 1.1", "scale begins with 1.5"),
        ("scale = 1.5", "global scale", "scale += 0.1", "scale begins with 1.5"),
        ("class scale:\n    value = 1.5", "pass", "scale.value += 0.1", "scale.value begins with 1.5"),
    ],
)
def test_what_a_function_adds_to_is_listed_with_what_it_begins_with(
    holds: str, names: str, change: str, says: str, tmp_path: Path
) -> None:
    made = GROWS.replace("{holds}", holds).replace("{names}", names).replace("{change}", change)
    read = "scale.value" if "class" in holds else "scale"
    found = lines_of(tmp_path, top=made, round="grow()", step=f"loss = loss * {read}")
    assert any(line.startswith(change) and says in line for line in found)


@pytest.mark.parametrize(
    "change",
    [
        "data.transform = use",
        "data.rows = data.rows[:30]",
        "data[3] = 5",
        "del data[3]",
        "data.shuffle(3)",
        "random.shuffle(data.rows)",
        "np.random.shuffle(data.rows)",
        "use(data)",
        "data.rows.sort(key=len)",
        "part = data.rows\npart.pop(3)",
        "for row in data.rows:\n    row[0] = 3",
        "rows.pop(3)",
    ],
)
@pytest.mark.parametrize("place", ["before", "round"])
def test_a_change_of_the_data_after_the_loader_is_made_is_listed(change: str, place: str, tmp_path: Path) -> None:
    assert has(lines_of(tmp_path, **{place: change}), change.rpartition("\n")[2].strip())


@pytest.mark.parametrize(
    "change",
    [
        "[use(row) for row in rows]",
        "list(map(rows.remove, [30]))",
        "(rows or [30]).pop()",
        "[rows][0].pop(30)",
        "{'a': rows}['a'].pop(30)",
        "drop = rows.pop",
        "functools.partial(rows.pop, 30)()",
        "rows.get('a').append(30)",
        "rows.setdefault('a', []).append(30)",
        "with open(rows.pop(30)) as file:\n    pass",
        "rows.angle, rows.size = 15, 3",
        "rows.angle: int = 15",
        "rows.sim.angle = 15",
    ],
)
def test_a_change_of_what_data_are_made_of_is_listed_in_each_form(change: str, tmp_path: Path) -> None:
    assert has(lines_of(tmp_path, data=change), change.partition("\n")[0])


@pytest.mark.parametrize(
    "line",
    [
        "config.ANGLE = 15",
        "config.SIM.ANGLE = 90",
        "config.SENSORS = ['depth']",
        "config.SIM.KEEP = False",
        "config.STEPS = 2 ** 32",
    ],
)
def test_what_an_object_that_was_not_read_is_given_is_listed(line: str, tmp_path: Path) -> None:
    made = f"def settings(config):\n    config = read(config)\n    {line}\n    opt.step()\n    return config\n"
    assert has(lines_of(tmp_path, before=f"{made}loader.dataset.engine = Engine(settings('a.yaml'))"), line)


TRIED = "try:\n    train()\nexcept Stop:\n    pass"


@pytest.mark.parametrize(
    ("parts", "line"),
    [
        ({"step": "if loss < 0.01:\n    raise Stop", "call": TRIED}, "raise Stop [only where loss < 0.01"),
        (
            {
                "top": "def watch(loss):\n    if loss < 0.01:\n        raise Stop",
                "step": "watch(loss)",
                "call": TRIED,
            },
            "raise Stop [only where loss < 0.01",
        ),
        ({"step": "try:\n    if loss > 3:\n        raise Stop\nexcept Stop:\n    continue"}, "raise Stop [only where"),
        ({"end": "try:\n    open('stop')\n    break\nexcept OSError:\n    pass"}, "break"),
        ({"end": "try:\n    k = read('stop')\nexcept OSError:\n    k = 0\nelse:\n    break"}, "break"),
        ({"end": "try:\n    use(3)\n    return\nexcept OSError:\n    pass"}, "return"),
        ({"end": "with contextlib.suppress(OSError):\n    open('stop')\n    break"}, "break"),
        (
            {
                "end": "if use(3):\n    raise StopIteration",
                "call": "with contextlib.suppress(StopIteration):\n    train()",
            },
            "raise StopIteration [only where use(3)]",
        ),
        ({"end": "if use(3):\n    raise SystemExit"}, "raise SystemExit [only where use(3)]"),
        ({"end": "if use(3):\n    raise SystemExit(0)"}, "raise SystemExit(0) [only where use(3)]"),
        (
            {"step": "assert loss < 3", "call": "try:\n    train()\nexcept AssertionError:\n    pass"},
            "assert loss < 3",
        ),
    ],
)
def test_an_exception_that_is_caught_leaves_a_loop_or_a_round(parts: dict[str, str], line: str, tmp_path: Path) -> None:
    assert has(lines_of(tmp_path, **parts), line)


@pytest.mark.parametrize(
    "parts",
    [
        {"step": "if torch.isnan(loss):\n    raise ValueError('nan')"},
        {"step": "assert loss < 3"},
        {"step": "if loss > 3:\n    raise Stop", "call": f"{TRIED}\n    raise"},
        {"call": "try:\n    if use('a'):\n        raise OSError\n    train()\nexcept OSError:\n    pass"},
    ],
)
def test_one_that_nothing_catches_refuses(parts: dict[str, str], tmp_path: Path) -> None:
    assert not any(line.startswith(("raise", "assert")) for line in lines_of(tmp_path, **parts))


@pytest.mark.parametrize(
    "line",
    [
        "elsewhere.SIZE = 30",
        "elsewhere.config.size = 30",
        "elsewhere.config['size'] = 30",
        "elsewhere.config.update(size=30)",
        "elsewhere.config.sizes.append(30)",
        "elsewhere.setup(size=30)",
        "elsewhere.SIZE += 30",
        "del elsewhere.SIZE",
        "Rows.size = 30",
        "use(30)",
        "math.pi = 3",
        "np.random.rand = use",
        "sys.modules['elsewhere'] = use",
        "os.environ['SIZE'] = '30'",
        "os.environ.update(SIZE='30')",
        "os.environ.setdefault('SIZE', '30')",
        "os.putenv('SIZE', '30')",
        "del os.environ['SIZE']",
        "torch.seed()",
        "random.setstate(read())",
        "np.random.set_state(read())",
        "torch.random.set_rng_state(read())",
        "signal.alarm(3600)",
        "threading.Timer(60, sys.exit).start()",
    ],
)
def test_what_is_set_in_a_library_or_a_process_is_listed(line: str, tmp_path: Path) -> None:
    assert has(lines_of(tmp_path, top=line), line)


@pytest.mark.parametrize(
    "line",
    [
        "os.environ['CUDA_VISIBLE_DEVICES'] = '1'",
        "os.environ['NCCL_DEBUG'] = 'INFO'",
        "os.environ.setdefault('HF_HOME', '/models')",
        "np.set_printoptions(precision=3)",
        "torch.backends.cudnn.benchmark = True",
        "sys.stdout = use",
        "import logging\nlogging.root.level = 3",
        "import pandas\npandas.options.display.max_rows = 3",
        "import cv2\ncv2.setNumThreads(0)",
        "import transformers\ntransformers.logging.set_verbosity_error()",
        "import matplotlib.pyplot as plt\nplt.rcParams['figure.dpi'] = 3",
    ],
)
def test_what_changes_nothing_that_is_computed_is_not(line: str, tmp_path: Path) -> None:
    assert not has(lines_of(tmp_path, top=line), line.rpartition("\n")[2])


PARSES = "{argv}\nparser = argparse.ArgumentParser()\nparser.add_argument('--rate', type=float, default=0.1)\n"


@pytest.mark.parametrize(
    ("argv", "rate"),
    [
        ("sys.argv.append('--rate=0.3')", "???"),
        ("sys.argv.extend(['--rate', '0.3'])", "???"),
        ("sys.argv += ['--rate', '0.3']", "???"),
        ("sys.argv = ['train.py', '--rate', '0.3']", "???"),
        ("sys.argv[1:] = ['--rate', '0.3']", "???"),
        ("sys.argv = sys.argv + use()", "???"),
        ("sys.argv = sys.argv[:1]", 0.1),
        ("sys.argv = ['train.py']", 0.1),
        ("sys.argv[1:] = []", 0.1),
        ("sys.argv = [one for one in sys.argv if one != '-f']", 0.1),
        ("print(sys.argv)", 0.1),
    ],
)
def test_what_a_script_puts_on_its_command_line_counts_before_the_defaults(
    argv: str, rate: float | str, tmp_path: Path
) -> None:
    text = SCRIPT.replace("lr=0.2", "lr=parser.parse_args().rate").replace("{call}", "train()")
    text = text.replace("{top}", PARSES.replace("{argv}", argv))
    for name in ("data", "before", "round", "step", "end"):
        text = text.replace(f"{{{name}}}", "pass")
    (tmp_path / "train.py").write_text(text)
    assert drafted(tmp_path / "train.py")["optimizer"]["args"] == {"lr": rate}


@pytest.mark.parametrize(
    "write",
    [
        "import gzip\nwith gzip.GzipFile('a.csv', 'w') as file:\n    file.write(use())",
        "import bz2\nwith bz2.BZ2File('a.csv', 'w') as file:\n    file.write(use())",
        "import lzma\nfile = lzma.LZMAFile('a.csv', 'w')\nfile.write(use())",
    ],
)
def test_a_file_of_data_may_be_written_by_a_class(write: str, tmp_path: Path) -> None:
    top = f"{write}\n"
    assert any(
        "it writes what train.py" in line for line in lines_of(tmp_path, top=top, data="rows = open('a.csv').read()")
    )


VALUES = "import argparse, copy\nimport torch, torch.nn as nn\nfrom elsewhere import use\n{made}\n" + (
    "net = nn.Linear(4, 7)\nopt = torch.optim.SGD(net.parameters(), lr=rate)\n"
)
DECORATED = "{mark}\ndef base():\n    return 0.1\nrate = base()"
COPIED = "table = {{'a': {{'rate': 0.1}}}}\nother = {way}\nother{at} = 0.3\nrate = table['a']['rate']"
PARSED = "parser = argparse.ArgumentParser()\nkept = parser.add_argument('--rate', type=float, default=0.1)\n{write}\n"


@pytest.mark.parametrize(
    ("made", "rate"),
    [
        (DECORATED.format(mark="def given(f):\n    return lambda: 0.3\n@given"), "???"),
        (DECORATED.format(mark="def given(f):\n    return lambda *a: f(*a) * 3\n@given"), "???"),
        (DECORATED.format(mark="def given(f):\n    made = lambda: f() * 3\n    return made\n@given"), "???"),
        (PARSED.format(write="kept.default = 0.3") + "rate = parser.parse_args().rate", "???"),
        (PARSED.format(write="parser._defaults['rate'] = 0.3") + "rate = parser.parse_args().rate", "???"),
        (
            PARSED.format(write="for one in parser._actions:\n    one.default = 0.3")
            + "rate = parser.parse_args().rate",
            "???",
        ),
        (
            PARSED.format(write="parser.add_argument('--other', dest='rate', type=float, default=0.3)")
            + "rate = parser.parse_args().rate",
            0.1,
        ),
        (COPIED.format(way="copy.copy(table)", at="['a']['rate']"), 0.3),
        (COPIED.format(way="dict(table)", at="['a']['rate']"), 0.3),
        (COPIED.format(way="table.copy()", at="['a']['rate']"), 0.3),
        (COPIED.format(way="copy.copy(table)", at="['a']"), 0.1),
        (COPIED.format(way="dict(table)", at="['a']"), 0.1),
        (COPIED.format(way="copy.deepcopy(table)", at="['a']['rate']"), 0.1),
    ],
)
def test_a_value_that_changes_by_another_way_is_not_the_one_before(
    made: str, rate: float | str, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(VALUES.replace("{made}", made))
    assert drafted(tmp_path / "train.py")["optimizer"]["args"] == {"lr": rate}


@pytest.mark.parametrize(
    ("data", "line"),
    [
        ("size = use(1)\nbefore = size\nsize -= 1\nrows = rows[size:before]", "before = size"),
        ("size = use(1)\nbefore = size\nif size > 3:\n    size = 3\nrows = rows[size:before]", "before = size"),
        ("kept = rows\nfor k in range(3):\n    rows = use(rows)\nrows = kept", "kept = rows"),
        ("size = use(1)\nkept = size\nif use(2):\n    kept = use(3)\nrows = rows[:kept]", "kept = size"),
    ],
)
def test_a_copy_is_listed_where_a_later_line_gives_either_name_something_else(
    data: str, line: str, tmp_path: Path
) -> None:
    assert has(lines_of(tmp_path, data=data), line)


@pytest.mark.parametrize(
    ("data", "line", "says"),
    [
        (
            "start = 3\nif os.path.exists('a'):\n    start = read('a')\nrows = rows[start:]",
            "rows = rows[start:]",
            "start is 3 or",
        ),
        (
            "rate = 0.3\nif use(1):\n    rate = 0.5\nrows = use(rows, rate)",
            "rows = use(rows, rate)",
            "rate is 0.3 or 0.5",
        ),
        ("rate = 0.3\nfor rate in use():\n    pass\nrows = use(rows, rate)", "rows = use(rows, rate)", ""),
        (
            "plans = {'long': (80, 0.5)}\nrows = use(rows, plans[read('b')])",
            "rows = use(rows, plans",
            "plans is {'long': [80, 0.5]}",
        ),
        ("plans = [3, 7]\nrows = rows[plans[use(1)] :]", "rows = rows[plans[use(1)]", "plans is [3, 7]"),
    ],
)
def test_a_start_that_a_condition_may_change_and_a_table_of_an_unknown_key_are_said(
    data: str, line: str, says: str, tmp_path: Path
) -> None:
    assert any(one.startswith(line) and says in one for one in lines_of(tmp_path, data=data))


LOADERS = """
import torch, torch.nn as nn
from elsewhere import Rows
def made(rows, size, fix=True, shuffle=False):
    return torch.utils.data.DataLoader(rows, batch_size=size, shuffle=shuffle)
{each}
net = nn.Linear(4, 7)
opt = torch.optim.SGD(net.parameters(), lr=0.2)
for epoch in range(6):
    for x, y in {loader}:
        loss = nn.functional.mse_loss(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
"""


@pytest.mark.parametrize(
    ("each", "loader"),
    [
        ("all_ = {k: made(Rows(k), 8, shuffle=(k == 'train')) for k in ('train', 'test')}", "all_['train']"),
        ("all_ = {k: made(Rows(k), 8, True, k == 'train') for k in ['train', 'test']}", "all_['train']"),
        ("all_ = [made(Rows(k), 8, shuffle=k == 'train') for k in ['train', 'test']]", "all_[0]"),
        ("first, last = [made(Rows(k), 8, shuffle=k == 'train') for k in ['train', 'test']]", "first"),
        ("all_ = dict((k, made(Rows(k), 8, shuffle=k == 'train')) for k in ['train', 'test'])", "all_['train']"),
        (
            "all_ = {k: torch.utils.data.DataLoader(Rows(k), 8, shuffle=k == 'train') for k in ['train', 'test']}",
            "all_['train']",
        ),
        (
            "all_ = {k: made(Rows(k), 8, shuffle=True if k == 'train' else False) for k in ['train', 'test']}",
            "all_['train']",
        ),
    ],
)
def test_an_element_of_a_comprehension_is_not_the_whole_list(each: str, loader: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(LOADERS.replace("{each}", each).replace("{loader}", loader))
    assert drafted(tmp_path / "train.py")["data"]["shuffle"] == "???"


@pytest.mark.parametrize(
    "line",
    [
        "kept = list(net.backbone.parameters())",
        "kept = [p for p in net.head.parameters()]",
        "kept = list(net[0].parameters())",
    ],
)
def test_the_parameters_of_a_part_are_no_copy(line: str, tmp_path: Path) -> None:
    text = VALUES.replace("{made}", "").replace("net = nn.Linear(4, 7)", f"net = use()\n{line}")
    text = text.replace("lr=rate", "lr=0.1").replace("net.parameters()", "[{'params': kept}]")
    (tmp_path / "train.py").write_text(text)
    assert has(listed(tmp_path / "train.py"), line)


@pytest.mark.parametrize("made", ["GradScaler()", "GradScaler() if half else None", "GradScaler() if use() else None"])
def test_a_scaler_that_may_be_none_updates(made: str, tmp_path: Path) -> None:
    step = "made.scale(loss).backward()\nmade.step(opt)\nmade.update()\ncontinue"
    found = lines_of(tmp_path, before=f"half = True\nfrom torch.amp import GradScaler\nmade = {made}", step=step)
    assert not any("no step() of an optimizer" in line for line in found)


REFUSES = """
parser = argparse.ArgumentParser()
parser.add_argument("--net", default="e")
args = parser.parse_args()
size = 8
if args.net == "cnn":
    size = 30
{between}
if args.net == "cnn":
    made = use(1)
elif args.net == "rnn":
    made = use(2)
else:
    raise NotImplementedError
"""


@pytest.mark.parametrize("between", ["pass", "print(size)", "other = use(size)"])
def test_an_option_whose_default_is_refused_is_open_before_that_too(between: str, tmp_path: Path) -> None:
    found = lines_of(tmp_path, top=REFUSES.replace("{between}", between), data="rows = rows[:size]")
    assert any("size is 30 or 8" in line or line.startswith("size = 30") for line in found)


@pytest.mark.parametrize(
    "seed", ["int(args.seed) * dist.get_world_size() + dist.get_rank()", "3 * torch.cuda.device_count() + 1"]
)
def test_a_seed_that_is_computed_by_devices_is_listed(seed: str, tmp_path: Path) -> None:
    top = f"import torch.distributed as dist\nargs = read('args')\nseed = {seed}\ntorch.manual_seed(seed)"
    assert has(lines_of(tmp_path, top=top), "seed = ")


FETCHES = """
from pathlib import Path
import requests, urllib.request
from concurrent.futures import ThreadPoolExecutor
place = Path('pictures')
"""


@pytest.mark.parametrize(
    ("fetch", "line"),
    [
        (
            "for k in range(30):\n    (place / f'{k}.jpg').write_bytes(requests.get('http://x').content)",
            "(place / f'{k}.jpg')",
        ),
        (
            "def get(k):\n    it = requests.get('http://x')\n    open(place / f'{k}', 'wb').write(it.content)\nget(3)",
            "it = requests",
        ),
        ("def get(to):\n    to.write_bytes(requests.get('http://x').content)\nget(place / 'a.jpg')", "to.write_bytes"),
        (
            "def get(both):\n    k, to = both\n    to.write_bytes(urllib.request.urlopen('http://x').read())\n"
            "with ThreadPoolExecutor(3) as pool:\n    pool.submit(get, (3, place / 'a.jpg'))",
            "pool.submit(get",
        ),
        (
            "from PIL import Image\nfor one in Path('raw').iterdir():\n    Image.open(one).save(place / one.name)",
            "Image.open(one)",
        ),
    ],
)
def test_files_that_are_fetched_or_made_for_a_folder_of_data_are_listed(fetch: str, line: str, tmp_path: Path) -> None:
    found = lines_of(tmp_path, top=FETCHES + fetch, data="rows = sorted(place.glob('*.jpg'))")
    assert has(found, line)
