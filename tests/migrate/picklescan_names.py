"""What picklescan 1.0.5 calls dangerous (github.com/mmaitre314/picklescan, scanner.py, MIT)."""

from __future__ import annotations

DANGEROUS = {
    "__builtin__": "eval compile getattr apply exec open breakpoint",
    "builtins": "eval compile getattr apply exec open breakpoint",
    "cloudpickle.cloudpickle": "_builtin_type _make_function _function_setstate _make_cell _make_empty_cell subimport",
    "types": "CodeType",
    "functools": "partial",
    "logging": "FileHandler",
    "_io": "FileIO",
    "_operator": "attrgetter itemgetter methodcaller",
    "operator": "attrgetter itemgetter methodcaller",
    "code": "InteractiveInterpreter.runcode",
    "doctest": "debug_script",
    "ensurepip": "_run_pip",
    "idlelib.autocomplete": "AutoComplete.get_entity AutoComplete.fetch_completions",
    "idlelib.calltip": "Calltip.fetch_tip get_entity",
    "idlelib.debugobj": "ObjectTreeItem.SetText",
    "idlelib.pyshell": "ModifiedInterpreter.runcode ModifiedInterpreter.runcommand",
    "idlelib.run": "Executive.runcode",
    "imaplib": "IMAP4_stream",
    "lib2to3.pgen2.grammar": "Grammar.loads",
    "lib2to3.pgen2.pgen": "ParserGenerator.make_label",
    "pkgutil": "resolve_name",
    "torch._dynamo.guards": "GuardBuilder.get",
    "torch._inductor.codecache": "compile_file",
    "torch.fx.experimental.symbolic_shapes": "ShapeEnv.evaluate_guards_expression",
    "torch.jit.unsupported_tensor_ops": "execWrapper",
    "torch.serialization": "load",
    "torch.utils._config_module": "ConfigModule.load_config",
    "torch.utils.bottleneck.__main__": "run_cprofile run_autograd_prof",
    "torch.utils.collect_env": "run",
    "torch.utils.data.datapipes.utils.decoder": "basichandlers",
    "trace": "Trace.run Trace.runctx",
}
WHOLE = (  # modules of which everything is
    "aiohttp asyncio bdb commands ctypes httplib numpy.f2py numpy.testing._private.utils nt posix os requests.api "
    "runpy shutil socket ssl subprocess sys cProfile distutils.file_util pdb pickle _pickle pip pty profile pydoc "
    "test timeit urllib.request uuid venv webbrowser _osx_support _aix_support _pyrepl"
)
# What stands for any name of a module: one that is written as a function, and one as a class.
ANY = ("run", "Anything")

NAMES = [
    *((module, name) for module, names in DANGEROUS.items() for name in names.split()),
    *((module, name) for module in WHOLE.split() for name in ANY),
]
