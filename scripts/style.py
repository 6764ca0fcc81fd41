"""Sizes of files and functions, order of the folders, banned words: prints every breach, exit 1 where there is one."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CODE = {".h", ".cc", ".cu", ".cuh"}
LIMITS = {".h": 150, ".cc": 300, ".cu": 300, ".cuh": 150}
FUNCTION_LIMIT = 60
# A folder includes only itself and what stands before it.
ORDER = ["base", "graph/ir", "graph/ops", "graph/text", "graph/onnx", "runtime/plan", "passes/edit", "passes", "kernels", "runtime/device", "runtime/comm",
         "runtime/data", "runtime/exec", "runtime/cuda", "runtime/mpi", "api", "tools"]
# OpKind is made of graph/ops/ops.def.
SIBLINGS = {("graph/ir", "graph/ops")}
BANNED = [(re.compile(p), why) for p, why in [
    (r"\b(Manager|Helper|Util|Utils)\b", "word that says nothing"),
    (r"\b(std::)?abort\(\)|\bexit\(", "ends the process below main"),
    (r"\bgetenv\(", "environment variable below tools"),
    (r"-march=native", "native code"),
]]


def layer(path):
    text = str(path)
    found = [name for name in ORDER if text.startswith(name + "/")]
    return max(found, key=len) if found else None


def functions(lines):
    """(first line, length) of every brace block that starts at column 0 or in a namespace and looks like a function."""
    start, depth = None, 0
    for number, line in enumerate(lines, 1):
        code = re.sub(r'"(\\.|[^"\\])*"|\'(\\.|[^\'\\])+\'|//.*', "", line)
        if start is None and re.match(r"^[A-Za-z_~].*\)[^;]*\{\s*$", code) and not re.match(r"^(namespace|struct|class|enum|extern)\b", code):
            start, depth = number, 0
        depth += code.count("{") - code.count("}")
        if start is not None and depth <= 0 and number >= start and "}" in code:
            yield start, number - start + 1
            start = None


def main():
    exceptions = set((ROOT / "scripts/style-exceptions.txt").read_text().split("\n"))
    breaches = []
    for path in sorted(ROOT.rglob("*")):
        relative = path.relative_to(ROOT)
        if path.suffix not in CODE or str(relative).startswith(("build", ".git/")):
            continue
        lines = path.read_text().split("\n")
        if len(lines) - 1 > LIMITS[path.suffix]:
            breaches.append(f"{relative}: {len(lines) - 1} lines, at most {LIMITS[path.suffix]}")
        for first, length in functions(lines):
            if length > FUNCTION_LIMIT:
                breaches.append(f"{relative}:{first}: function of {length} lines, at most {FUNCTION_LIMIT}")
        own = layer(relative)
        for number, line in enumerate(lines, 1):
            included = re.match(r'#include "(.*)"', line)
            target = layer(included.group(1)) if included else None
            if own and target and ORDER.index(target) > ORDER.index(own) and (own, target) not in SIBLINGS:
                breaches.append(f"{relative}:{number}: {own} includes {target}")
            for pattern, why in BANNED:
                if own and own != "tools" and pattern.search(line.split("//")[0]):
                    breaches.append(f"{relative}:{number}: {why}: {line.strip()}")
    new = [b for b in breaches if b not in exceptions]
    gone = [e for e in exceptions if e and e not in breaches]
    for line in new:
        print(line)
    for line in gone:
        print(f"scripts/style-exceptions.txt: no longer needed: {line}")
    print(f"style: {len(new)} breaches, {len(exceptions - {''})} listed exceptions")
    return 1 if new or gone else 0


sys.exit(main())
